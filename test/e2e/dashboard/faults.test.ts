// A coordinator that is killed and starts again while pages are open, and a terminal that prints without an end.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { signIn } from '../../support/dashboard.ts'
import { startProxiedCoordinator } from '../../support/proxied-coordinator.ts'
import { testTerminalFlood } from '../../support/terminal-flood.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MIB = 1024 * 1024

t.test('faults of the coordinator and floods of output', { skip: NO_BROWSER }, async (t) => {
  const { coordinator, clientProxy, box, restart } = await startProxiedCoordinator(t)
  const { sendJson, waitForState, dataDir } = coordinator
  await waitForState(box.id, 'running')
  const context = await (await startBrowser(t)).newContext({ viewport: { width: 1400, height: 800 } })
  const base = `${clientProxy.url}/boxes/${box.hostname}`
  const open = async (path: string): Promise<Page> => {
    const page = await context.newPage()
    await page.goto(path)
    return page
  }
  const boxes = await open(`${clientProxy.url}/boxes/`)
  await signIn(boxes, dataDir)
  await boxes.getByRole('row', { name: new RegExp(box.hostname) }).waitFor()
  const edge = (method: string, path: string, body?: unknown) =>
    sendJson(method, `/v1/box/${box.id}${path}`, body)

  await t.test('kill -9: each page says so, and continues by itself', async (t) => {
    const dialog = boxes.getByRole('dialog')
    await boxes.getByRole('button', { name: 'New box' }).click()
    await dialog.getByLabel('Name', { exact: true }).fill('after')

    const commands = await open(`${base}/commands`)
    await commands
      .getByLabel('Command', { exact: true })
      .fill('i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i"; sleep 0.1; done')
    await commands.keyboard.press('Enter')
    await commands.getByRole('log').getByText('line 5', { exact: true }).waitFor()

    const files = await open(`${base}/files`)
    await files.getByText(/entries, read/).waitFor()
    const network = await context.newCDPSession(files)
    const limitUpload = (uploadThroughput: number) =>
      network.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput,
      })
    await limitUpload(MIB / 8)
    const content = Buffer.alloc(8 * MIB, 7)
    const file = join(t.testdir(), 'up.bin')
    writeFileSync(file, content)
    await files.getByLabel('Upload files').setInputFiles(file)
    await waitUntil('a part is sent', () =>
      files.evaluate<boolean>("document.querySelector('.uploads progress')?.value > 0"),
    )

    await coordinator.kill('SIGKILL')
    const lost = 'The connection to the coordinator is lost.'
    for (const page of [boxes, commands, files]) await page.getByText(lost).waitFor()
    await files.getByText('The upload was interrupted.').waitFor()
    await restart()
    for (const page of [boxes, commands, files]) await page.getByText(lost).waitFor({ state: 'detached' })

    t.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'after')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    const { boxes: list } = await sendJson('GET', '/api/v1/boxes?live=1')
    t.equal(list.filter(({ hostname }: { hostname: string }) => hostname === 'after').length, 1)
    await boxes
      .getByRole('row', { name: /^Choose after / })
      .locator('.state.running')
      .waitFor()

    await limitUpload(-1)
    await files.getByRole('button', { name: /^Upload .*up\.bin again$/ }).click()
    await files.getByText('1 of 1 files uploaded').waitFor()
    await files.getByRole('link', { name: 'up.bin' }).waitFor()
    t.equal((await edge('GET', '/files/stat?path=up.bin')).entry.size, content.length)

    // The document has the last 500 lines.
    const readNumbers = async () =>
      (await commands.locator('.line').allTextContents()).map((line) => Number(line.slice('line '.length)))
    const last = (await readNumbers()).at(-1) ?? 0
    await waitUntil('further lines are shown', async () => ((await readNumbers()).at(-1) ?? 0) > last + 5)
    await edge('POST', '/exec', { command: 'touch stop' })
    await commands.getByText('succeeded').waitFor()
    const numbers = await readNumbers()
    const [first = 0] = numbers
    t.same(
      numbers,
      numbers.map((_, index) => first + index),
      'no line is missing or double',
    )
    await commands.close()
    await files.close()
  })

  await t.test('a terminal prints a line of 1 MiB', async (t) => {
    const page = await open(`${base}/terminals`)
    await page.getByLabel('Name').fill('line')
    await page.getByLabel('Program').fill("head -c 1048576 /dev/zero | tr '\\0' x; echo; echo end; exec cat")
    await page.keyboard.press('Enter')
    await page.locator('.xterm-rows > div', { hasText: /^end\s*$/ }).waitFor()
    await page.keyboard.type('echoed\n')
    await page
      .locator('.xterm-rows > div', { hasText: /^echoed\s*$/ })
      .nth(1)
      .waitFor()
    t.match(await page.locator('.xterm-rows').textContent(), /x{1000}/)
    await page.close()
  })

  await t.test('a terminal prints 50 MB: the page and the coordinator stay small, and keys arrive', (t) =>
    testTerminalFlood(t, { context, base, pid: coordinator.pid, bytes: 50 * MIB }),
  )
})
