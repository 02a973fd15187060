// The pages of the boxes, terminals, commands and conversations with the keyboard only: what each action did is checked with the
// API, and the focus is never lost.
import t from 'tap'
import type { Box } from '../../../shared/api/boxes.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'
import { FAKE_CLAUDE } from '../../support/fake-claude.ts'
import { createKeyboard } from '../../support/keyboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** More than a menu has. */
const MAX_ITEMS = 20

t.test('boxes', { skip: NO_BROWSER }, async (t) => {
  const { api, box, page, problems, waitForState } = await openDashboard(t, () => '/boxes/', {
    machines: 'fake',
  })
  const { tabTo, press, type, expect } = createKeyboard(t, page)
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^Choose ${name} `) })
  const state = (name: string, value: string) => row(name).locator(`.state.${value}`)
  const dialog = page.getByRole('dialog')
  /** Chooses an item of the menu of a box. */
  async function choose(name: string, label: string): Promise<void> {
    await press(button(`Actions of ${name}`))
    const item = page.getByRole('menuitem', { name: label, exact: true })
    await item.waitFor()
    for (let count = 0; count < MAX_ITEMS; count++) {
      if (await item.evaluate((element) => element === element.ownerDocument.activeElement)) break
      await page.keyboard.press('ArrowDown')
    }
    await page.keyboard.press('Enter')
  }
  const list = async (): Promise<Box[]> => (await api('GET', '/boxes?live=1')).json.boxes
  const find = async (name: string) => (await list()).find(({ hostname }) => hostname === name)

  await t.test('create', async (t) => {
    await press(button('New box'))
    await expect(dialog)
    await page.keyboard.type('second')
    await page.keyboard.press('Enter')
    await expect(dialog, 'detached')
    await expect(state('second', 'running'))
    t.ok(await find('second'))
  })

  await t.test('filter and sort', async (t) => {
    await type(page.getByLabel('Filter'), 'second')
    await expect(row(box.hostname), 'detached')
    await page.keyboard.press('Control+a')
    await page.keyboard.press('Backspace')
    await expect(row(box.hostname))
    await press(button('State'))
    await expect(page.locator('th[aria-sort=ascending]', { hasText: 'State' }))
    t.match(page.url(), /\?sort=state$/)
  })

  await t.test('select several, and suspend them', async () => {
    for (const name of [box.hostname, 'second']) await press(page.getByLabel(`Choose ${name}`), 'Space')
    await expect(page.getByText('2 chosen'))
    await press(button('Suspend 2'))
    await expect(dialog)
    await press(dialog.getByRole('button', { name: 'Suspend', exact: true }))
    await expect(page.getByText('2 of 2 are being suspended.'))
    await waitForState(box.id, 'suspended')
    await expect(state('second', 'suspended'))
  })

  await t.test('wake and suspend: the buttons change live', async () => {
    await press(button('Wake second'))
    await expect(state('second', 'running'))
    await press(button('Suspend second'))
    await expect(state('second', 'suspended'))
    await press(button('Wake second'))
    await expect(button('Suspend second'))
  })

  await t.test('fork and snapshot', async (t) => {
    await choose('second', 'Fork')
    await expect(dialog)
    await page.keyboard.type('copy')
    await page.keyboard.press('Enter')
    await expect(row('copy'))
    await choose('second', 'Snapshot')
    await expect(dialog)
    await page.keyboard.press('Control+a')
    await page.keyboard.type('before')
    await page.keyboard.press('Enter')
    await expect(page.getByText('The snapshot before is being taken.'))
    t.match((await api('GET', '/snapshots')).json.snapshots, [{ name: 'before' }])
  })

  await t.test('stop, and delete with the name typed', async (t) => {
    await press(row('second').getByRole('link'))
    await expect(page.getByRole('heading', { level: 1, name: 'second' }))
    await choose('second', 'Stop')
    await expect(dialog)
    await press(dialog.getByRole('button', { name: 'Stop', exact: true }))
    await expect(button('Wake second'))
    t.match(await find('second'), { suspendedAs: 'stopped' })
    await choose('second', 'Delete')
    await expect(dialog)
    await page.keyboard.type('second')
    await page.keyboard.press('Enter')
    await expect(page.getByText('The box was deleted, or is not yours any more.'))
    await waitUntil('the box is deleted', async () => (await find('second')) === undefined)
    await tabTo(page.getByRole('link', { name: 'Boxes', exact: true }).last())
    await page.keyboard.press('Enter')
    await expect(row('copy'))
  })

  await t.test('a box that others delete has the focus', async () => {
    await tabTo(row('copy').getByRole('link'))
    await api('DELETE', `/boxes/${(await find('copy'))?.id}`)
    await expect(row('copy'), 'detached')
  })
  t.same(problems, [], 'no violation of the policy and no error')
})

t.test('a box', { skip: NO_BROWSER }, async (t) => {
  const { api, box, page, problems, edge, url } = await openDashboard(
    t,
    ({ hostname }) => `/boxes/${hostname}/terminals`,
  )
  const { press, type, expect } = createKeyboard(t, page)
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name, exact: true })
  const dialog = page.getByRole('dialog')

  await t.test('terminals: open, share, full screen, detach, attach, end', async (t) => {
    const listSessions = async () => (await edge(box.id, 'GET', '/terminal/sessions')).json.sessions
    const leave = () => page.keyboard.press('Control+Shift+L')
    await type(page.getByLabel('Name'), 'work')
    await type(page.getByLabel('Program'), 'cat')
    await page.keyboard.press('Enter')
    await expect(page.getByText('Connected.'))
    await page.keyboard.type('hello\n')
    await expect(page.locator('.xterm-rows').getByText('hello'))
    const other = await page.context().newPage()
    await other.goto(page.url())
    await other.locator('.xterm-rows').getByText('hello').first().waitFor()
    t.match(await listSessions(), [{ session: 'work', clients: 2 }])
    await other.close()
    await page.bringToFront()
    await leave()
    await press(button('Full screen'))
    await expect(page.locator('.terminal.full'))
    await leave()
    await press(button('Full screen'))
    await expect(page.locator('.terminal.full'), 'detached')
    await leave()
    await press(link('Detach'))
    await expect(link('work'))
    await press(link('work'))
    await expect(page.locator('.xterm-rows').getByText('hello'))
    await leave()
    await press(button('End the session work'))
    await expect(dialog)
    await press(dialog.getByRole('button', { name: 'End the session' }))
    await expect(page.getByText(/The session (has ended|was killed)/))
    t.same(await listSessions(), [])
    await leave()
    await press(link('Detach'))
    await expect(page.getByText('There is no session.'))
  })

  await t.test('commands: run, follow, search, stop, run again', async (t) => {
    const getStatus = async () => {
      const id = new URL(page.url()).searchParams.get('command')
      return (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command.status
    }
    await press(link('Commands'))
    await type(
      page.getByLabel('Command', { exact: true }),
      'echo begin; while [ ! -e go ]; do sleep 0.05; done; echo after; exec sleep 1000',
    )
    await page.keyboard.press('Enter')
    await expect(page.getByRole('log').getByText('begin'))
    await edge(box.id, 'POST', '/exec', { command: 'touch go' })
    await expect(page.getByRole('log').getByText('after'))
    await type(page.getByLabel('Search stdout'), 'after')
    await expect(page.getByText('Match 1 of 1, line 2'))
    await press(button('Next match'))
    await expect(page.locator('.line.current'))
    await press(button('Stop'))
    await expect(page.getByText('killed by TERM'))
    t.equal(await getStatus(), 'killed')
    const stopped = page.url()
    await press(button('Run again'))
    await page.waitForURL((address) => address.href !== stopped)
    await expect(page.getByRole('log').getByText('after'))
    t.equal(await getStatus(), 'running')
    await press(button('Stop'))
    await expect(page.getByText('killed by TERM'))
    await press(link('All commands'))
    await expect(page.getByLabel('Command', { exact: true }))
  })

  await t.test('conversations: start, continue, queue, interrupt', async (t) => {
    const path = '.local/bin/claude'
    await edge(box.id, 'POST', '/exec', { command: 'mkdir -p ~/.local/bin' })
    await edge(box.id, 'PUT', '/files', { path, content: FAKE_CLAUDE, mode: '0755' })
    await api('PATCH', `/boxes/${box.id}`, { env: { ANTHROPIC_API_KEY: 'test' } })
    const prompt = page.getByRole('textbox', { name: 'Prompt' })
    const answer = (text: string) => page.locator('.markdown', { hasText: text })
    const list = async () => (await edge(box.id, 'GET', '/prompts')).json
    await press(link('Conversations'))
    await type(prompt, 'hello')
    await press(button('Send'))
    await expect(answer('hello'))
    await expect(page.locator('.run .state', { hasText: 'done' }))
    await press(page.locator('summary', { hasText: 'Bash ls' }), 'Space')
    await expect(page.locator('details[open] pre'))
    await type(prompt, 'wait')
    await press(button('Send'))
    await expect(answer('waiting'))
    await type(prompt, 'second')
    await press(button('Queue'))
    await expect(page.getByRole('region', { name: 'Queue' }))
    t.match((await list()).queued, [{ prompt: 'second' }])
    await press(button('Remove prompt 1 from the queue'))
    await expect(page.getByRole('region', { name: 'Queue' }), 'detached')
    t.same((await list()).queued, [])
    await press(button('Stop Claude Code'))
    await expect(page.locator('.run .state', { hasText: 'interrupted' }))
    t.match((await list()).runs, [{ status: 'interrupted' }, { status: 'done' }])
    await press(link('New conversation'))
    await expect(page.getByText('0 of at most 4 runs in progress'))
  })
  t.same(problems, [], `no violation of the policy and no error of ${url}`)
})
