// A proxy that cuts all connections again and again, as one with a time limit does: the feed, a terminal, the output of a command
// and a conversation of a real box continue, each in a tab of its own.
import type { Page } from 'playwright-core'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { collectProblems, openDashboard } from '../../support/dashboard.ts'
import { startTunnelProxy } from '../../support/tunnel-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Prints numbered lines, up to the number in the file `wanted`, until the file has `end`. */
const countWith = (print: string) =>
  `i=0; while read n <~/wanted && [ "$n" != end ]; do if [ $i -lt "$n" ]; then i=$((i+1)); ${print}; fi; sleep 0.05; done`
const COUNTER = countWith('echo "line $i"')
const AGENT = `#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
cat >/dev/null
echo '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001"}'
${countWith(`echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"line $i"'"}]}}'`)}
echo '{"type":"result","subtype":"success","is_error":false,"result":"end"}'
`
const CUTS = 3
const LINES_PER_CUT = 15

const readAll = async (page: Page, selector: string): Promise<string[]> => {
  const texts = await page.locator(selector).allTextContents()
  return texts.flatMap((text) => text.replaceAll('\u00a0', ' ').match(/line \d+/g) ?? [])
}

t.test('a proxy that cuts connections', { skip: NO_BROWSER }, async (t) => {
  const { page, box, api, edge, url, problems } = await openDashboard(t, () => '/boxes/')
  const proxy = await startTunnelProxy(Number(new URL(url).port))
  t.teardown(() => proxy.close())
  const root = `${url.replace(new URL(url).host, new URL(proxy.url).host)}/boxes/${box.hostname}`
  const want = (lines: number | 'end') =>
    edge(box.id, 'POST', '/exec', { command: `echo ${lines} >next && mv next wanted` })
  const open = async (path: string) => {
    const opened = await page.context().newPage()
    collectProblems(opened, problems)
    await opened.setViewportSize({ width: 1000, height: 3200 })
    await opened.goto(root + path)
    return opened
  }
  await want(0)
  await edge(box.id, 'POST', '/exec', { command: 'mkdir -p ~/.local/bin' })
  await edge(box.id, 'PUT', '/files', { path: '.local/bin/claude', content: AGENT, mode: '0755' })
  await api('PATCH', `/boxes/${box.id}`, { env: { ANTHROPIC_API_KEY: 'test' } })

  const overview = await open('')
  const terminal = await open('/terminals')
  await terminal.getByLabel('Name').fill('count')
  await terminal.getByLabel('Program').fill(`${COUNTER}; exit 3`)
  await terminal.keyboard.press('Enter')
  await terminal.getByText('Connected.').waitFor()
  const command = await open('/commands')
  await command.getByLabel('Command', { exact: true }).fill(`${COUNTER}; exit 4`)
  await command.keyboard.press('Enter')
  await command.getByRole('heading', { name: 'Output' }).waitFor()
  const conversation = await open('/conversations')
  await conversation.getByRole('textbox', { name: 'Prompt' }).fill('count')
  await conversation.getByRole('button', { name: 'Send' }).click()
  await conversation.getByRole('region', { name: /^Run / }).waitFor()

  const counters = { terminal, command, conversation }
  const SELECTORS = { terminal: '.xterm-rows > div', command: '[role=log] .line', conversation: '.markdown' }
  const read = (name: keyof typeof counters) => readAll(counters[name], SELECTORS[name])
  const waitForLines = (count: number) =>
    Promise.all(
      (['terminal', 'command', 'conversation'] as const).map((name) =>
        waitUntil(
          `${count} lines in the tab with the ${name}`,
          async () => (await read(name)).length >= count,
        ),
      ),
    )
  for (let cut = 1; cut <= CUTS; cut += 1) {
    const before = (cut - 1) * LINES_PER_CUT
    await want(cut * LINES_PER_CUT)
    // The programs print while the connections are cut.
    await waitForLines(before + 1)
    proxy.reset()
    const autoPauseMin = 100 + cut
    await api('PATCH', `/boxes/${box.id}`, { autoPauseMin })
    await overview.getByText(`after ${autoPauseMin} minutes`).waitFor()
    await waitForLines(cut * LINES_PER_CUT)
  }
  await want('end')
  await terminal.getByText('The session has ended with exit status 3.').waitFor()
  await command.getByText('exited with 4').waitFor()
  await conversation.locator('.run .state', { hasText: 'done' }).waitFor()

  const expected = Array.from({ length: CUTS * LINES_PER_CUT }, (_, index) => `line ${index + 1}`)
  for (const name of ['terminal', 'command', 'conversation'] as const)
    t.same(await read(name), expected, `${name}: no line is missing or double`)
  for (const [name, shown] of Object.entries({ overview, ...counters })) {
    await waitUntil(`no error in the tab with the ${name}`, async () => {
      const errors = await shown.locator('.problem, .banner, [role=alert]').allTextContents()
      return errors.every((text) => text.trim() === '')
    })
  }
  t.same(
    problems.filter((text) => !/net::ERR|WebSocket connection/.test(text)),
    [],
    'the browser reports the cuts only',
  )
})
