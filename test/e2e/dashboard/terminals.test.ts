// Terminals of a real box in a browser, over a connection that is cut.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { collectProblems, openDashboard, waitForExpression } from '../../support/dashboard.ts'
import { startTunnelProxy } from '../../support/tunnel-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Counts at most to what the window shows. */
const COUNTER =
  'i=0; while [ ! -e stop ] && [ $i -lt 95 ]; do i=$((i+1)); echo "line $i"; sleep 0.1; done; exit 3'
const QUERIES = String.raw`read start; printf '\033[31mred\033[0m \033[c\033[6n\033[>q\033]11;?\007\033]52;c;ZXZpbA==\007\033]8;;https://example.com/x\007link\033]8;;\007\n'; exec cat -v`

/** The test reads the canvas after the frame in which it was drawn. */
const KEEP_DRAWING = `{
  const { getContext } = HTMLCanvasElement.prototype
  HTMLCanvasElement.prototype.getContext = function (type, options) {
    return getContext.call(this, type, { ...options, preserveDrawingBuffer: true })
  }
}`

/** Whether the canvas of the terminal has a pixel like the red of its theme. */
const HAS_RED = `(() => {
  const canvas = document.querySelector('.xterm-screen canvas:not(.xterm-link-layer)')
  const copy = document.createElement('canvas')
  copy.width = canvas.width
  copy.height = 100
  const context = copy.getContext('2d')
  context.drawImage(canvas, 0, 0)
  const { data } = context.getImageData(0, 0, copy.width, copy.height)
  for (let index = 0; index < data.length; index += 4)
    if (data[index] > 200 && data[index + 1] < 170 && data[index + 2] < 170 && data[index + 3] > 0) return true
  return false
})()`

const readLines = async (page: Page): Promise<string[]> => {
  const rows = await page.locator('.xterm-rows > div').allTextContents()
  return rows.map((row) => row.replaceAll('\u00a0', ' ').trimEnd()).filter((row) => row !== '')
}

t.test('the page of the terminals', { skip: NO_BROWSER }, async (t) => {
  const { page, box, edge, url, problems } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/terminals`,
  )
  const proxy = await startTunnelProxy(Number(new URL(url).port))
  t.teardown(() => proxy.close())
  await page.setViewportSize({ width: 1000, height: 3200 })
  const path = `/boxes/${box.hostname}/terminals`
  const listSessions = async () => (await edge(box.id, 'GET', '/terminal/sessions')).json.sessions
  const waitForLine = (wanted: string, shown: Page = page) =>
    waitUntil(wanted, async () => (await readLines(shown)).includes(wanted))

  await t.test('a counter survives a reload and cut connections: no line is missing or double', async (t) => {
    await page.goto(url.replace(new URL(url).host, new URL(proxy.url).host) + path)
    await page.getByLabel('Name').fill('count')
    await page.getByLabel('Program').fill(COUNTER)
    await page.keyboard.press('Enter')
    await waitForLine('line 5')
    t.match(await listSessions(), [{ session: 'count', clients: 1 }])
    await page.reload()
    await waitForLine('line 15')
    proxy.reset()
    await waitForLine('line 30')
    proxy.blackhole()
    await page.evaluate("window.dispatchEvent(new Event('online'))")
    await waitForLine('line 45')
    await edge(box.id, 'POST', '/exec', { command: 'touch stop' })
    await page.getByText('The session has ended with exit status 3.').waitFor()
    const lines = await readLines(page)
    t.same(
      lines,
      lines.map((_, index) => `line ${index + 1}`),
      'the text stays',
    )
    t.ok(lines.length >= 45)
  })
  // The proxy has cut the requests of the page.
  problems.splice(0)

  await t.test('colours, queries without answers, input of two viewers', async (t) => {
    await page.goto(url + path)
    await page.getByLabel('Name').fill('cat')
    await page.getByLabel('Program').fill(QUERIES)
    await page.keyboard.press('Enter')
    await page.getByText('Connected.').waitFor()
    await page.keyboard.press('Enter')
    await waitForLine('red link')
    t.same(
      await page.evaluate(
        "[...document.querySelectorAll('.xterm-rows span')].flatMap((span) => span.textContent === 'red' ? [getComputedStyle(span).color] : [])",
      ),
      ['rgb(255, 143, 134)'],
    )
    await page.keyboard.type('first\n')
    await waitUntil('it is echoed and printed', async () => (await readLines(page))[2] === 'first')
    const second = await page.context().newPage()
    collectProblems(second, problems)
    await second.goto(page.url())
    await waitForLine('red link', second)
    await second.locator('.xterm-helper-textarea').focus()
    await second.keyboard.type('second\n')
    for (const shown of [page, second])
      await waitUntil('both viewers show it', async () => (await readLines(shown))[4] === 'second')
    const expected = ['red link', 'first', 'first', 'second', 'second']
    t.same(await readLines(page), expected, 'no answer to a query was typed')
    t.same(await readLines(second), expected)
    t.match(await listSessions(), [{ session: 'cat', clients: 2 }])
    await second.close()
  })

  await t.test('a paste of several lines asks, a link asks', async (t) => {
    await page.bringToFront()
    const paste = (text: string) =>
      page.evaluate(`{
        const clipboardData = new DataTransfer()
        clipboardData.setData('text/plain', ${JSON.stringify(text)})
        const event = { clipboardData, bubbles: true, cancelable: true }
        document.querySelector('.xterm-helper-textarea').dispatchEvent(new ClipboardEvent('paste', event))
      }`)
    await paste('one')
    await waitForLine('one')
    await page.keyboard.press('Enter')
    await paste('x\ny\n')
    const dialog = page.getByRole('dialog', { name: 'Paste 2 lines?' })
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await paste('x\ny\n')
    await dialog.getByRole('button', { name: 'Paste' }).click()
    await waitForLine('y')
    t.same((await readLines(page)).slice(-4).sort(), ['x', 'x', 'y', 'y'])

    await page.locator('.xterm-rows').getByText('link').hover({ force: true })
    await page.locator('.xterm-cursor-pointer').waitFor()
    await page.mouse.down()
    await page.mouse.up()
    const question = page.getByRole('dialog', { name: 'Open this link?' })
    const link = question.getByRole('link', { name: 'Open' })
    t.equal(await link.getAttribute('href'), 'https://example.com/x')
    t.equal(await link.getAttribute('rel'), 'noopener noreferrer')
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'detached' })
  })

  await t.test('WebGL by choice: kept, loaded when it is chosen, and replaced when it fails', async (t) => {
    const shown = await page.context().newPage()
    const warnings = collectProblems(shown)
    const scripts: string[] = []
    shown.on('request', (request) => {
      if (request.resourceType() === 'script') scripts.push(request.url())
    })
    await shown.goto(page.url())
    await waitForLine('red link', shown)
    t.equal(await shown.locator('.xterm canvas').count(), 0, 'it is off by default')
    const withoutWebgl = scripts.length
    const checkbox = shown.getByLabel('WebGL')
    await checkbox.check()
    const canvas = shown.locator('.xterm-screen canvas:not(.xterm-link-layer)')
    await canvas.waitFor()
    t.equal(scripts.length, withoutWebgl + 1, 'the renderer is a file of its own')
    await shown.locator('.xterm-rows').waitFor({ state: 'detached' })
    await shown.addInitScript(KEEP_DRAWING)
    await shown.reload()
    await canvas.waitFor()
    t.ok(await checkbox.isChecked(), 'the choice is kept')
    await waitUntil('the colour of the program is drawn', () => shown.evaluate(HAS_RED))
    await shown.evaluate(
      "document.querySelector('.xterm-screen canvas:not(.xterm-link-layer)').getContext('webgl2').getExtension('WEBGL_lose_context').loseContext()",
    )
    await shown.getByText('The browser has ended WebGL.').waitFor()
    await waitForLine('red link', shown)
    await shown.addInitScript('HTMLCanvasElement.prototype.getContext = () => null')
    await shown.reload()
    await shown.getByText('WebGL is not available.').waitFor()
    await waitForLine('red link', shown)
    await checkbox.uncheck()
    await shown.reload()
    await waitForLine('red link', shown)
    t.notOk(await checkbox.isChecked())
    await shown.close()
    // The test reads pixels, and ends the context.
    const expected = /ReadPixels|webgl context not restored/
    t.same(
      warnings.filter((text) => !expected.test(text)),
      [],
    )
  })

  await t.test('leave with the keyboard, full screen, and end', async (t) => {
    await page.locator('.xterm-helper-textarea').focus()
    await page.keyboard.press('Control+Shift+L')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Detach')
    await page.getByRole('button', { name: 'Full screen' }).click()
    await waitUntil(
      'the session has the size of the window',
      async () => (await listSessions())?.[0]?.rows > 150,
    )
    await page.getByRole('button', { name: 'Full screen' }).click()
    await page.getByRole('link', { name: 'Detach' }).click()
    await page.getByRole('row', { name: 'cat' }).waitFor()
    t.match(await listSessions(), [{ session: 'cat' }], 'the session continues')
    await page.getByRole('button', { name: 'End the session cat' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click()
    await page.getByText('There is no session.').waitFor()
    t.same(await listSessions(), [])
    await waitForExpression(page, "document.activeElement.tagName === 'H1'")
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
