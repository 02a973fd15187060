// Each role on each page, in a browser: the offered pages and actions are those that docs/access.md allows, no request is
// refused, and actions have their effect.
import type { Page } from 'playwright-core'
import t from 'tap'
import { BOX_TABS, WORKSPACE_PAGES } from '../../../dashboard/data/routes.ts'
import type { Box } from '../../../shared/api/boxes.ts'
import { ISSUER, insertAwsRoles } from '../../support/aws-roles.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import type { RequestOptions, TestCoordinator } from '../../support/coordinator.ts'
import { chooseAction, openDashboard, openPage } from '../../support/dashboard.ts'
import { FAKE_CLAUDE } from '../../support/fake-claude.ts'
import { payWorkspace } from '../../support/pay-workspace.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Column, readRows } from '../access/tables.ts'

type Role = 'owner' | 'member' | 'contractor'

/** Whether docs/access.md allows the route. The edge accepts tickets, which the session creates. */
function isAllowed(role: Role, route: string): boolean {
  const row = ROWS.find((candidate) => candidate.route === route)
  if (row === undefined) throw new Error(`docs/access.md does not have ${route}`)
  const hasCell = (column: Column) => ['✓', 'own'].includes(row.cells[column])
  return row.host === 'edge'
    ? hasCell('ticket') && isAllowed(role, 'POST /boxes/{id}/tickets')
    : hasCell(`${role} session`)
}
const ROWS = readRows()

type Opened = { page: Page; box: Box; role: Role; api: TestCoordinator['api'] }
/** A name, and the route that it needs; null: it sends no request that a role may not send. */
type Action = readonly [RegExp, string | null]

type View = {
  /** The route that the page reads. */
  reads: string
  /** Shows that the page has loaded. */
  ready: string | RegExp
  /** The buttons, and the items of the first menu. */
  buttons: readonly Action[]
  /** Uses an offered action, and waits for its effect. */
  use(opened: Opened): Promise<unknown>
}

const press = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first().click()
/** Submits the open dialog, and waits until it has closed. */
async function submit(page: Page, label: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: label, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

const ROW_ACTIONS: readonly Action[] = [
  [/^Suspend /, 'POST /boxes/{id}/suspend'],
  [/^Actions of /, null],
  [/^Fork$/, 'POST /boxes/{id}/fork'],
  [/^Snapshot$/, 'POST /snapshots'],
  [/^Delete$/, 'DELETE /boxes/{id}'],
]

/** On each page of a box. */
const BOX_ACTIONS: readonly Action[] = [
  ...ROW_ACTIONS,
  [/^Rename$/, 'PATCH /boxes/{id}'],
  [/^Give to a member$/, 'POST /boxes/{id}/owner'],
  [/^Schedule$/, 'PATCH /boxes/{id}'],
  [/^Resize$/, 'POST /boxes/{id}/resize'],
  [/^Move$/, 'POST /boxes/{id}/region'],
  [/^Make a template$/, 'POST /boxes/{id}/template'],
  [/^Stop$/, 'POST /boxes/{id}/suspend'],
  [/^Open terminal$/, 'POST /terminal/sessions'],
]

const BOXES: View = {
  reads: 'GET /boxes',
  ready: 'running',
  buttons: [
    [/^(All|Running|Suspended|Failed) ?\d+$/, null],
    [/^(Name|State|Owner|CPU|Last activity)$/, null],
    ...ROW_ACTIONS,
  ],
  async use({ page, box, role }) {
    await press(page, 'New box')
    await page.getByText('More settings').click()
    await page.getByRole('option', { name: /us-east-1/ }).waitFor({ state: 'attached' })
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await chooseAction(page, box.hostname, 'Snapshot')
    await page.getByLabel('Name of the snapshot').fill(`of-${role}`)
    await submit(page, 'Take the snapshot')
    await page.getByText(`The snapshot of-${role} is being taken.`).waitFor()
  },
}

const BOX_VIEWS: Record<keyof typeof BOX_TABS, View> = {
  overview: {
    reads: 'GET /boxes/{id}',
    ready: 'Last commands',
    buttons: [
      // Disabled for a restricted box.
      [/^Mount a secret: /, 'POST /boxes/{id}/secrets'],
    ],
    async use({ page, box, api }) {
      await chooseAction(page, box.hostname, 'Schedule')
      await page.getByLabel('Suspend when idle for').fill('120')
      await submit(page, 'Set')
      await waitUntil('the schedule is set', async () => {
        return (await api('GET', `/boxes/${box.id}`)).json.box.autoPauseMin === 120
      })
    },
  },
  timeline: {
    reads: 'GET /boxes/{id}/metrics',
    ready: 'Events in this range',
    buttons: [[/^(Whole life|Last hour|24 hours|7 days|30 days|Earlier|Later|Zoom in|Zoom out)$/, null]],
    async use({ page }) {
      await press(page, 'Last hour')
      await page.waitForURL(/last=3600/)
      await press(page, 'Zoom out')
      await page.waitForURL(/last=7200/)
    },
  },
  terminals: {
    reads: 'GET /terminal/sessions',
    ready: 'There is no session.',
    buttons: [[/^Start a session$/, 'POST /terminal/sessions']],
    async use({ page }) {
      await press(page, 'Start a session')
      await page.getByText('Connected.').waitFor()
      await press(page, /^End the session/)
      await submit(page, 'End the session')
      await page.getByText(/The session (has ended|was killed)/).waitFor()
    },
  },
  commands: {
    reads: 'GET /boxes/{id}/commands',
    ready: 'Duration',
    buttons: [[/^Run$/, 'POST /exec']],
    async use({ page }) {
      await page.getByLabel('Command', { exact: true }).fill('echo done')
      await press(page, 'Run')
      await page.getByText('succeeded').first().waitFor()
      await page.getByRole('log').getByText('done').waitFor()
      await page.getByRole('button', { name: 'Run again' }).waitFor()
    },
  },
  conversations: {
    reads: 'GET /prompts/conversations',
    ready: 'runs in progress',
    buttons: [
      [/^Send$/, 'POST /prompts'],
      [/^Install /, 'POST /exec'],
      // Disabled for a restricted box.
      [/^(Sign in|Use another key): /, 'POST /boxes/{id}/secrets'],
      [/^Default model$/, null],
    ],
    async use({ page }) {
      await page.getByRole('textbox', { name: 'Prompt' }).fill('hello')
      await press(page, 'Send')
      await page.locator('.run .state', { hasText: 'done' }).waitFor()
    },
  },
  files: {
    reads: 'GET /files/list',
    ready: /entries, read/,
    buttons: [
      [/^(Name|Size|Last change)$/, null],
      [/^Refresh$/, 'GET /files/list'],
      [/^Create a directory$/, 'POST /files/mkdir'],
      [/^Download /, 'POST /boxes/{id}/download-links'],
      [/^Rename /, 'POST /files/move'],
      [/^Delete /, 'DELETE /files'],
    ],
    async use({ page, role }) {
      await press(page, 'Create a directory')
      await page.getByRole('dialog').getByLabel('Name').fill(`of-${role}`)
      await submit(page, 'Create')
      await page.getByRole('link', { name: `of-${role}/` }).waitFor()
      const download = page.waitForEvent('download')
      await press(page, 'Download a.txt')
      await download
    },
  },
  processes: {
    reads: 'GET /processes',
    ready: /^CPU .* processes?/,
    buttons: [
      [/^(Tree|List|Command|PID|CPU|Memory)/, null],
      [/^Kill /, 'POST /exec'],
      [/^Share a port$/, 'POST /boxes/{id}/port-shares'],
    ],
    async use({ page, box, role, api }) {
      await press(page, 'Share a port')
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Port', { exact: true }).fill('3000')
      const options = dialog.getByLabel('Who may open the link').locator('option')
      const audiences = await options.evaluateAll((all) => all.map((option) => option.getAttribute('value')))
      const forMembers = role === 'owner' ? ['members', 'anyone', 'public'] : ['members', 'anyone']
      t.same(audiences, box.restricted ? ['members'] : forMembers, 'the links that the box may have')
      await submit(page, 'Create the link')
      await page.getByText('The link to port 3000').waitFor()
      t.match((await api('GET', `/boxes/${box.id}/port-shares`)).json.shares, [{ port: 3000 }])
      await press(page, 'Revoke the link to 3000')
      await page.getByText('no port is shared').waitFor()
    },
  },
}

const WORKSPACE_VIEWS: Record<keyof typeof WORKSPACE_PAGES, View> = {
  prompts: {
    reads: 'GET /prompts',
    ready: 'As of',
    buttons: [[/^(All|Running|Queued|Failed) ?\d+$/, null]],
    async use({ page }) {
      // The page of the conversations has sent it.
      await page.getByRole('link', { name: 'hello' }).first().click()
      await page.locator('.run').first().waitFor()
    },
  },
  snapshots: {
    reads: 'GET /snapshots',
    ready: 'available',
    buttons: [
      [/^Create a box: /, 'POST /snapshots/{id}/restore'],
      [/^Make a template: /, 'POST /snapshots/{id}/template'],
      [/^Delete: /, 'DELETE /snapshots/{id}'],
    ],
    async use({ page, role }) {
      await press(page, `Delete: of-${role}`)
      await submit(page, 'Delete')
      await page.getByRole('button', { name: `Delete: of-${role}` }).waitFor({ state: 'detached' })
    },
  },
  environments: {
    reads: 'GET /environments',
    ready: 'There is no environment.',
    buttons: [[/^Create an environment$/, 'POST /environments']],
    async use({ page }) {
      await press(page, 'Create an environment')
      await page.getByLabel('Name', { exact: true }).fill('web')
      await submit(page, 'Create')
      await press(page, 'Delete: web')
      await submit(page, 'Delete')
      await page.getByText('There is no environment.').waitFor()
    },
  },
  secrets: {
    reads: 'GET /secrets',
    ready: 'There is no secret.',
    buttons: [[/^Create a secret$/, 'POST /secrets']],
    async use({ page }) {
      await press(page, 'Create a secret')
      await page.getByLabel('Name', { exact: true }).fill('TOKEN')
      await page.getByLabel('Value').fill('test-value')
      await page.getByLabel('Hosts').fill('api.example.com')
      await submit(page, 'Create')
      await press(page, 'Delete: TOKEN')
      await submit(page, 'Delete')
      await page.getByText('There is no secret.').waitFor()
    },
  },
  images: {
    reads: 'GET /images',
    // Local boxes have no images: workspace.test.ts has the actions.
    ready: 'No region has images',
    buttons: [],
    async use() {},
  },
  machines: {
    reads: 'GET /machines',
    ready: 'New builds:',
    buttons: [
      [/^Add a machine$/, 'POST /machines'],
      [/^Change the rollout$/, 'PATCH /agents/rollout'],
    ],
    async use({ page }) {
      await press(page, 'Add a machine')
      await page.getByLabel('Name of the box').fill('server')
      await submit(page, 'Show the command')
      await page.getByText('Waiting for the machine').waitFor()
      await press(page, 'Revoke the token server')
      await submit(page, 'Revoke')
      await page.getByRole('button', { name: /^Revoke the token/ }).waitFor({ state: 'detached' })
    },
  },
  aws: {
    reads: 'GET /aws-roles',
    ready: 'AccessDenied',
    buttons: [
      [/^Connect a role$/, 'POST /aws-roles'],
      [/^Verify /, 'POST /aws-roles/{id}/verify'],
      [/^Disconnect /, 'DELETE /aws-roles/{id}'],
    ],
    async use({ page, role }) {
      await page.getByText('Trust policy of a role').click()
      await page.getByText('oidc-provider').last().waitFor()
      if (role !== 'owner') return
      await press(page, 'Disconnect audit')
      await submit(page, 'Disconnect')
      await page.getByText('audit was disconnected.').waitFor()
    },
  },
  keys: {
    reads: 'GET /keys',
    ready: /As of/,
    buttons: [
      [/^Create a key$/, 'POST /keys'],
      [/^Change /, 'PATCH /keys/{id}'],
      [/^Rotate /, 'POST /keys/{id}/rotate'],
      [/^Revoke /, 'DELETE /keys/{id}'],
    ],
    async use({ page }) {
      await press(page, 'Create a key')
      await page.getByLabel('What the key is for').fill('ci')
      await submit(page, 'Create the key')
      await page.getByRole('region', { name: 'The secret of the key ci' }).waitFor()
      await press(page, 'Revoke ci')
      await submit(page, 'Revoke')
      await page.getByRole('button', { name: 'Revoke ci' }).waitFor({ state: 'detached' })
    },
  },
  members: {
    reads: 'GET /members',
    ready: /As of/,
    buttons: [
      [/^Invite a person$/, 'POST /members'],
      [/^Change /, 'PATCH /members/{id}'],
      [/^Remove /, 'DELETE /members/{id}'],
    ],
    async use({ page, role }) {
      if (role !== 'owner') return
      await press(page, 'Invite a person')
      await page.getByLabel('Email address').fill('ada@example.com')
      await submit(page, 'Invite')
      await page.getByText('ada@example.com is invited.').waitFor()
    },
  },
  policies: {
    reads: 'GET /workspace/policies',
    ready: 'Links without a sign-in',
    buttons: [[/^Edit /, 'PATCH /workspace/policies']],
    async use({ page, role }) {
      if (role !== 'owner') return
      await press(page, 'Edit Boxes of each member')
      await page.getByRole('dialog').getByRole('textbox').fill('7')
      await submit(page, 'Save')
      await page.getByText('7 boxes', { exact: true }).waitFor()
    },
  },
  audit: {
    reads: 'GET /audit',
    ready: /As of/,
    buttons: [
      [/^(Show|Newer|Older)$/, 'GET /audit'],
      [/^Details of event \d+$/, null],
      [/^Verify the log$/, 'GET /audit/chain'],
    ],
    async use({ page }) {
      await press(page, 'Verify the log')
      await page.getByText(/events are intact. Note the head/).waitFor()
    },
  },
  billing: {
    reads: 'GET /billing',
    ready: 'free credit',
    buttons: [[/^By (box|member)$/, null]],
    async use({ page }) {
      await page.getByLabel('Month in UTC').selectOption({ index: 1 })
      await page.getByText('There is no usage in this month.').waitFor()
    },
  },
  settings: {
    reads: 'GET /workspace',
    ready: 'Zero data retention',
    // The first workspace of a coordinator cannot be closed.
    buttons: [
      [/^Rename$/, 'PATCH /workspace'],
      [/^Turn on zero data retention$/, 'PATCH /workspace'],
      [/^Change your name$/, 'PATCH /session/user'],
      [/^(Add an|Change your) email address$/, 'POST /session/email'],
    ],
    async use({ page, role }) {
      await press(page, 'Change your name')
      await page.getByLabel('Name', { exact: true }).fill('Grace')
      await submit(page, 'Change')
      const you = page.getByRole('region', { name: 'You' })
      await you.getByText('Grace', { exact: true }).waitFor()
      await you.getByText(role, { exact: true }).waitFor()
    },
  },
  sessions: {
    reads: 'GET /sessions',
    ready: 'this session',
    buttons: [[/^(Sign out of this session|End the session of )/, 'DELETE /sessions/{id}']],
    async use({ page }) {
      await press(page, 'Sign out of this session')
      await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click()
      // Two parts of the page may navigate there, and the second navigation aborts the first.
      await waitUntil('the page of the sign-in', async () => page.url().includes('/sign-in'))
    },
  },
}

/** Not actions: what copies a command, shows one, loads a list again, or writes a first prompt into its field. */
const NO_ACTION = /^(Copy: .*|Load again|The same in a terminal|(Explain|Run|Write) .*\.)$/

/** The names of the buttons of the page, and of the items of its first menu. */
async function listButtons(page: Page): Promise<string[]> {
  const readNames = (selector: string): Promise<string[]> =>
    page
      .locator(selector)
      .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? one.textContent ?? ''))
  const buttons = await readNames('main button:visible')
  const menu = page.locator('main [aria-haspopup=menu]').first()
  if ((await menu.count()) > 0) {
    await menu.click()
    // The browser shows the menu before the page has filled it.
    await page.locator('main [role=menuitem]').first().waitFor()
    buttons.push(...(await readNames('main [role=menuitem]')))
    await page.keyboard.press('Escape')
  }
  return buttons.filter((name) => !NO_ACTION.test(name))
}

t.test('roles', { skip: NO_BROWSER }, async (t) => {
  const dashboard = await openDashboard(t, () => '/boxes/', {
    machines: 'local',
    env: { BOXWOOD_BILLING: 'manual', BOXWOOD_OIDC_ISSUER: ISSUER },
  })
  await payWorkspace(dashboard)
  await insertAwsRoles(dashboard)
  const { url, api, edge, box: first } = dashboard
  const browser = dashboard.page.context().browser()
  if (browser === null) throw new Error('there is no browser')

  async function createBox(session: RequestOptions, body: object): Promise<Box> {
    const { json } = await api('POST', '/boxes', body, session)
    return dashboard.waitForState(json.box.id, 'running')
  }
  async function prepare(box: Box): Promise<void> {
    const path = '.local/bin/claude'
    // The page of the processes offers no button for the init and the agent.
    const sleeper = 'setsid sleep 100000 </dev/null >/dev/null 2>&1 &'
    await edge(box.id, 'POST', '/exec', { command: `mkdir -p ~/.local/bin && echo a > a.txt; ${sleeper}` })
    await edge(box.id, 'PUT', '/files', { path, content: FAKE_CLAUDE, mode: '0755' })
    await api('PATCH', `/boxes/${box.id}`, { env: { ANTHROPIC_API_KEY: 'test' } })
  }

  const member = await createTestSession(dashboard, 'member')
  const contractor = await createTestSession(dashboard, 'contractor')
  const restricted = await createBox(member, { name: 'restricted', restricted: true })
  const own = await createBox(contractor, { name: 'own' })
  t.match([restricted, own], [{ restricted: true }, { restricted: true }])
  for (const box of [first, restricted, own]) await prepare(box)

  for (const { name, role, session, box } of [
    { name: 'a member on the box of the owner', role: 'member', session: member, box: first },
    {
      name: 'a member on a restricted box',
      role: 'member',
      session: await createTestSession(dashboard, 'member'),
      box: restricted,
    },
    { name: 'a contractor', role: 'contractor', session: contractor, box: own },
    { name: 'an owner', role: 'owner', session: await createTestSession(dashboard), box: first },
  ] as const)
    await t.test(name, async (t) => {
      const { page, refused, problems } = await openPage(browser, url, session)
      const opened = { page, box, role, api }
      await api('POST', '/keys', { name: 'laptop' }, session)

      async function check(title: string, path: string, view: View): Promise<void> {
        await page.goto(url + path)
        if (!isAllowed(role, view.reads)) {
          await page.getByText('This page is not for your role').waitFor()
          t.same(await listButtons(page), [], `${title}: no action`)
          return
        }
        const heading = page.getByRole('heading', { level: 1 })
        await heading.waitFor()
        await page.getByText(view.ready).first().waitFor()
        await page.waitForLoadState('networkidle')
        const allowed = view.buttons.filter(([, route]) => route === null || isAllowed(role, route))
        // A part of the page may be in a file of its own.
        for (const [pattern] of allowed.filter((button) => !BOX_ACTIONS.includes(button)))
          await page
            .getByRole('button', { name: pattern })
            .first()
            .waitFor()
            .catch(() => undefined)
        const offered = await listButtons(page)
        t.same(
          offered.filter((label) => !allowed.some(([pattern]) => pattern.test(label))),
          [],
          `${title}: no other action`,
        )
        t.same(
          allowed
            .map(([pattern]) => pattern)
            .filter((pattern) => !offered.some((label) => pattern.test(label))),
          [],
          `${title}: every allowed action`,
        )
        await view.use(opened)
      }

      await t.test('boxes', async () => {
        await check('boxes', '/', BOXES)
        const names = await page.locator('table.boxes tbody th a').allTextContents()
        const all = [first, restricted, own].map(({ hostname }) => hostname)
        t.same(names.sort(), role === 'contractor' ? [own.hostname] : all.sort())
        const labels = await page
          .getByRole('navigation', { name: 'Pages' })
          .locator('.label')
          .allTextContents()
        t.same(
          // Sessions are in the menu of the user.
          [...labels, 'Sessions'].sort(),
          [
            'Boxes',
            ...Object.entries(WORKSPACE_PAGES)
              .filter(([name]) =>
                isAllowed(role, WORKSPACE_VIEWS[name as keyof typeof WORKSPACE_PAGES].reads),
              )
              .map(([, label]) => label),
          ].sort(),
          'the sidebar has the allowed pages',
        )
      })
      for (const [tab, label] of Object.entries(BOX_TABS))
        await t.test(label, () => {
          const path = `/boxes/${box.hostname}${tab === 'overview' ? '' : `/${tab}`}`
          const view = BOX_VIEWS[tab as keyof typeof BOX_TABS]
          return check(label, path, { ...view, buttons: [...BOX_ACTIONS, ...view.buttons] })
        })
      await t.test('the box of another user', async () => {
        await page.goto(`${url}/boxes/${first.hostname}`)
        await page
          .getByText(role === 'contractor' ? 'There is no box with this name' : 'Last commands')
          .waitFor()
      })
      const { sessions, ...others } = WORKSPACE_VIEWS
      for (const [name, view] of Object.entries(others))
        await t.test(name, () => check(name, `/workspace/${name}`, view))
      t.same(refused, [], 'no refused request')
      t.same(problems, [], 'no violation of the policy and no error')
      // Signing out is the last action.
      await t.test('sessions', () => check('sessions', '/workspace/sessions', sessions))
      await page.context().close()
    })
})
