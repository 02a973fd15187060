// axe-core on every page and view, light and dark, narrow and wide. With BOXWOOD_SCREENSHOTS, it takes their screenshots; then
// BOXWOOD_VIEWS may limit it to the views whose names begin with one of its words.
import type { Page } from 'playwright-core'
import t from 'tap'
import { createFailurePage } from '../../../coordinator/http/dashboard/shell.ts'
import { BOX_TABS, WORKSPACE_PAGES } from '../../../dashboard/data/routes.ts'
import { ISSUER, insertAwsRoles } from '../../support/aws-roles.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import {
  chooseAction,
  collectProblems,
  openDashboard,
  openPage,
  testAccessibility,
} from '../../support/dashboard.ts'
import { fillDashboard } from '../../support/dashboard-content.ts'
import { payWorkspace } from '../../support/pay-workspace.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'

type View = {
  /** Of the screenshots. */
  name: string
  path: string
  /** Default: the owner. */
  as?: 'contractor' | 'visitor'
  /** Called before the page loads. */
  prepare?(page: Page): Promise<unknown>
  /** Shows what is tested. Default: nothing more than the page. */
  open?(page: Page): Promise<unknown>
  /** Visible when the page shows its content. */
  ready: string | RegExp
  /** Errors that the browser logs because of the view. */
  expected?: RegExp
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first().click()
const dialog = (page: Page) => page.getByRole('dialog').waitFor()
/** Opens the dialog of a button. */
const openDialog = (name: string | RegExp) => async (page: Page) => {
  await press(page, name)
  await dialog(page)
}

const READY: Record<keyof typeof BOX_TABS, string | RegExp> = {
  overview: 'Last commands',
  timeline: 'sh test.sh',
  terminals: 'the login shell',
  commands: 'grep -rn getTotal src',
  conversations: 'Why is the total',
  files: 'README.md',
  processes: /^CPU .* processes/,
}

const WORKSPACE_READY: Record<keyof typeof WORKSPACE_PAGES, string | RegExp> = {
  prompts: 'Why is the total',
  snapshots: 'available',
  environments: 'variables NODE_ENV',
  secrets: 'API_TOKEN',
  images: 'No region has images',
  machines: 'New builds:',
  aws: 'AccessDenied',
  keys: /^ci /,
  members: 'ada@example.com',
  policies: 'Links without a sign-in',
  audit: 'As of',
  billing: 'free credit',
  sessions: 'this session',
  settings: 'Zero data retention',
}

t.test('accessibility', { skip: NO_BROWSER }, async (t) => {
  const dashboard = await openDashboard(t, () => '/boxes/', {
    machines: 'local',
    env: { BOXWOOD_BILLING: 'manual', BOXWOOD_OIDC_ISSUER: ISSUER },
  })
  await payWorkspace(dashboard)
  await insertAwsRoles(dashboard)
  const { url, api, edge, box } = dashboard
  const { commandId } = await fillDashboard(dashboard, box)
  await api('POST', '/environments', { name: 'web', vars: { NODE_ENV: 'test' }, toggles: { git: true } })
  const { secret } = (
    await api('POST', '/secrets', {
      name: 'API_TOKEN',
      value: 'test-value',
      hosts: ['api.example.com'],
      grants: [{ boxId: box.id }],
    })
  ).json
  await api('POST', `/boxes/${box.id}/secrets`, { secretId: secret.id, envName: 'API_TOKEN' })
  await edge('api', 'POST', '/terminal/sessions', { session: 'shell' })
  await edge('api', 'POST', '/terminal/sessions', {
    session: 'tests',
    command: 'sh test.sh; exec sleep 1000',
  })
  const prompt = async (text: string) =>
    (await edge('api', 'POST', '/prompts', { provider: 'claude', prompt: text, new: true, auto: true })).json
      .run
  const { id, conversationId } = await prompt(
    'Why is the total of an order not a whole number of cents? Fix it.',
  )
  await waitUntil('the coding agent has answered', async () => {
    return (await edge('api', 'GET', `/prompts/${id}`)).json.run.status === 'done'
  })
  await prompt('Run the tests and watch for failures')

  const views: View[] = [
    { name: 'boxes', path: '/', ready: 'worker' },
    { name: 'design', path: '/design', ready: 'Messages' },
    {
      name: 'boxes-chosen',
      path: '/',
      ready: '2 chosen',
      async open(page) {
        for (const name of ['api', 'web']) await page.getByLabel(`Choose ${name}`).check()
      },
    },
    {
      name: 'boxes-suspend-several',
      path: '/',
      ready: 'box suspend api web',
      async open(page) {
        for (const name of ['api', 'web']) await page.getByLabel(`Choose ${name}`).check()
        await press(page, 'Suspend 2')
      },
    },
    {
      name: 'create-box',
      path: '/?create=',
      ready: 'Suspend when idle for',
      open: (page) => page.getByText('More settings').click(),
    },
    {
      name: 'palette',
      path: '/',
      ready: 'page of the box',
      async open(page) {
        await page.getByText('worker').first().waitFor()
        await page.keyboard.press('Control+k')
        await page.getByRole('combobox', { name: 'Box, page or action' }).fill('api')
      },
    },
    {
      name: 'boxes-menu',
      path: '/',
      ready: /^Snapshot$/,
      open: (page) => press(page, 'Actions of api'),
    },
    {
      name: 'boxes-commands',
      path: '/',
      ready: 'box ls',
      open: (page) => press(page, 'The same in a terminal'),
    },
    ...Object.keys(BOX_TABS).map((tab) => ({
      name: tab === 'overview' ? 'overview' : tab,
      path: `/boxes/api${tab === 'overview' ? '' : `/${tab}`}`,
      ready: READY[tab as keyof typeof BOX_TABS],
    })),
    { name: 'box-mount', path: '/boxes/api', ready: 'Cancel', open: openDialog(/^Mount/) },
    { name: 'box-suspended', path: '/boxes/worker', ready: 'Last commands' },
    ...['Fork', 'Snapshot', 'Delete', 'Rename', 'Schedule', 'Resize', 'Move', 'Make a template', 'Stop'].map(
      (label) => ({
        name: `box-${label.toLowerCase().replaceAll(' ', '-')}`,
        path: '/boxes/api',
        ready: 'Cancel',
        async open(page: Page) {
          await chooseAction(page, 'api', label)
          await dialog(page)
        },
      }),
    ),
    {
      name: 'timeline-moment',
      path: `/boxes/api/timeline?last=3600&at=${new Date(Date.now() - 20 * 60_000).toISOString()}`,
      ready: 'No processes were recorded',
      expected: /404/,
    },
    {
      name: 'timeline-command',
      path: '/boxes/api/timeline',
      ready: '1 failed',
      expected: /404/,
      async open(page) {
        const bar = page.locator('.lanes .bar.bad')
        await bar.waitFor()
        const area = await bar.boundingBox()
        await page.mouse.click((area?.x ?? 0) + 1, (area?.y ?? 0) + 4)
        await page.mouse.move(0, 0)
      },
    },
    { name: 'terminal', path: '/boxes/api/terminals?session=tests', ready: /5.passed/ },
    {
      name: 'terminal-end',
      path: '/boxes/api/terminals?session=tests',
      ready: 'for all viewers',
      open: openDialog(/^End/),
    },
    { name: 'command', path: `/boxes/api/commands?command=${commandId}`, ready: '5 passed' },
    {
      name: 'conversation',
      path: `/boxes/api/conversations?conversation=${conversationId}`,
      ready: 'is rounded to cents',
      open: (page) => page.getByText('Bash sh test.sh').click(),
    },
    { name: 'file', path: '/boxes/api/files?path=~/src&file=prices.ts', ready: 'export type Line' },
    {
      name: 'file-editor',
      path: '/boxes/api/files?path=~/src&file=prices.ts',
      ready: 'Save',
      open: (page) => press(page, 'Edit'),
    },
    {
      name: 'file-rename',
      path: '/boxes/api/files',
      ready: 'Cancel',
      open: openDialog('Rename README.md'),
    },
    { name: 'file-delete', path: '/boxes/api/files', ready: 'Cancel', open: openDialog('Delete docs') },
    { name: 'process-kill', path: '/boxes/api/processes', ready: 'Signal', open: openDialog(/^Kill/) },
    { name: 'port-share', path: '/boxes/api/processes', ready: 'Cancel', open: openDialog('Share a port') },
    { name: 'not-running', path: '/boxes/worker/files', ready: 'Files need a running box' },
    { name: 'no-processes', path: '/boxes/worker/processes', ready: 'no process runs' },
    ...Object.keys(WORKSPACE_PAGES).map((page) => ({
      name: `workspace-${page}`,
      path: `/workspace/${page}`,
      ready: WORKSPACE_READY[page as keyof typeof WORKSPACE_PAGES],
    })),
    {
      name: 'snapshot-restore',
      path: '/workspace/snapshots',
      ready: 'Cancel',
      open: openDialog(/^Create a box:/),
    },
    {
      name: 'key-create',
      path: '/workspace/keys',
      ready: 'Without a choice: all boxes',
      async open(page) {
        await press(page, 'Create a key')
        await page.getByLabel('What it may do').selectOption('only what is chosen here')
      },
    },
    {
      name: 'key-secret',
      path: '/workspace/keys',
      ready: 'It is shown only now',
      async open(page) {
        await press(page, 'Create a key')
        await page.getByLabel('What the key is for').fill('laptop')
        await press(page, 'Create the key')
      },
    },
    {
      name: 'secret-create',
      path: '/workspace/secrets',
      ready: 'Only these boxes',
      async open(page) {
        await press(page, 'Create a secret')
        await page.getByText('More settings').click()
      },
    },
    {
      name: 'secret-details',
      path: '/workspace/secrets',
      ready: 'No request has used the secret.',
      open: (page) => press(page, /^Grants and usage/),
    },
    {
      name: 'machine-add',
      path: '/workspace/machines',
      ready: 'Waiting for the machine',
      async open(page) {
        await press(page, 'Add a machine')
        await page.getByLabel('Name of the box').fill('server')
        await press(page, 'Show the command')
      },
    },
    {
      name: 'aws-connect',
      path: '/workspace/aws',
      ready: 'sts:AssumeRoleWithWebIdentity',
      async open(page) {
        await press(page, 'Connect a role')
        await page.getByRole('dialog').getByText('Trust policy of a role').click()
      },
    },
    {
      name: 'aws-link',
      path: '/workspace/aws',
      ready: 'Waiting for the role',
      prepare: routeAwsLink,
      async open(page) {
        await press(page, 'Create a role in AWS')
        await press(page, 'Create the link')
      },
    },
    {
      name: 'member-invite',
      path: '/workspace/members',
      ready: 'Cancel',
      open: openDialog('Invite a person'),
    },
    {
      name: 'policy-set',
      path: '/workspace/policies',
      ready: 'Cancel',
      open: openDialog('Edit Quiet hours'),
    },
    { name: 'workspace-rename', path: '/workspace/settings', ready: 'Cancel', open: openDialog('Rename') },
    { name: 'home', path: '/', as: 'visitor', ready: 'Sign in', expected: /401/ },
    { name: 'sign-in', path: '/sign-in', as: 'visitor', ready: 'Email address', expected: /401/ },
    {
      name: 'sign-in-code',
      path: '/sign-in',
      as: 'visitor',
      ready: 'Use another address',
      expected: /401/,
      async open(page) {
        await page.getByLabel('Email address').fill('grace@example.com')
        await press(page, 'Send code')
      },
    },
    { name: 'unknown-box', path: '/boxes/none', ready: 'There is no box with this name' },
    { name: 'unknown-page', path: '/boxes/api/none', ready: 'There is no such page' },
    {
      name: 'not-for-role',
      path: '/workspace/audit',
      as: 'contractor',
      ready: 'This page is not for your role',
    },
    {
      name: 'no-session',
      path: '/',
      ready: 'The session could not be loaded',
      expected: /500/,
      prepare: (page) =>
        page.route('**/api/v1/session', (route) =>
          route.fulfill({ status: 500, json: { error: 'internal_error', message: 'Not now.' } }),
        ),
    },
    {
      name: 'failed-build',
      path: '/boxes/api',
      ready: 'The dashboard could not be built',
      expected: /500/,
      prepare: (page) =>
        page.route(`${url}/boxes/api`, (route) =>
          route.fulfill({
            status: 500,
            contentType: 'text/html',
            body: createFailurePage('../', 'dashboard/app.tsx:1: Could not resolve "preact"'),
          }),
        ),
    },
    {
      name: 'newer-version',
      path: '/',
      ready: 'newer version of this page',
      prepare: (page) =>
        page.route('**/dashboard/build.json', (route) => route.fulfill({ json: { buildId: 'other' } })),
    },
    {
      name: 'connection-lost',
      path: '/',
      ready: 'The connection to the coordinator is lost',
      ...createCut(),
    },
  ]

  const browser = dashboard.page.context().browser()
  if (browser === null) throw new Error('there is no browser')
  const owner = dashboard.page.context()
  const visitor = await browser.newContext()
  /** A contractor is created with its page, so that the list of members shows only the people of the content. */
  const createPage = async (as: View['as']) => {
    if (as === 'visitor') return visitor.newPage()
    if (as === undefined) return owner.newPage()
    return (await openPage(browser, url, await createTestSession(dashboard, as))).page
  }
  await dashboard.page.close()

  const chosen = process.env.BOXWOOD_SCREENSHOTS ? (process.env.BOXWOOD_VIEWS ?? '').split(' ') : ['']
  const isChosen = ({ name }: View) => chosen.some((start) => name.startsWith(start))
  for (const { name, path, as, prepare, open, ready, expected } of views.filter(isChosen))
    await t.test(name, async (t) => {
      const page = await createPage(as)
      const problems = collectProblems(page)
      await prepare?.(page)
      await page.goto(url + path)
      await open?.(page)
      await testAccessibility(t, page, () => page.getByText(ready).first().waitFor(), name)
      t.same(
        problems.filter((text) => !expected?.test(text)),
        [],
        'no violation of the policy and no error',
      )
      await page.close()
    })
})

/** Links that create a role. They need a public address, which the coordinator of the test does not have. */
async function routeAwsLink(page: Page): Promise<void> {
  await page.route('**/api/v1/aws-roles', async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), quickConnect: true } })
  })
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  await page.route('**/api/v1/aws-connect', (route) =>
    route.fulfill({ json: { id: 'awc_1', url: 'https://console.aws.amazon.com/', expiresAt } }),
  )
}

/** Cuts the feed when the page shows boxes. */
function createCut(): Pick<View, 'prepare' | 'open'> {
  let cut: (() => Promise<void>) | null = null
  let isCut = false
  return {
    prepare: (page) =>
      page.routeWebSocket(/\/api\/v1\/feed/, (socket) => {
        if (isCut) return void socket.close()
        socket.connectToServer()
        cut = () => socket.close()
      }),
    async open(page) {
      await page.getByText('worker').first().waitFor()
      isCut = true
      await cut?.()
    },
  }
}
