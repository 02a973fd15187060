// The pages of the workspace in a real browser: what each action did is checked with the API.
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import t from 'tap'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { REGIONS } from '../../../shared/tiers.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { chooseAction, getAccountButton, openDashboard, waitForExpression } from '../../support/dashboard.ts'
import { FakeImages, withImages } from '../../support/fake-images.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { payWorkspace } from '../../support/pay-workspace.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'

const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()
/** Submits the open dialog, and waits until it has closed. */
async function submit(page: Page, label: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: label, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

t.test('the pages of the workspace', { skip: NO_BROWSER }, async (t) => {
  const infra = new FakeInfrastructure()
  const images = new FakeImages()
  const engine = withImages(new FakeInfrastructure(infra).provider, images)
  const dashboard = await openDashboard(t, () => '/workspace/snapshots', {
    infra,
    env: { BOXWOOD_BILLING: 'manual' },
    providers: createProviders(
      new Map(REGIONS.map((region) => [region, region === 'us-east-1' ? engine : infra.provider])),
    ),
  })
  await payWorkspace(dashboard)
  const { url, api, box, page, problems } = dashboard
  let owner = await createTestSession(dashboard)
  const load = async (path: string) => (await api('GET', path, undefined, owner)).json
  async function open(name: string, label: string): Promise<void> {
    await page.getByText('Workspace', { exact: true }).click()
    await page.getByRole('link', { name: label, exact: true }).click()
    await page.getByRole('heading', { level: 1, name: label }).waitFor()
    t.equal(page.url(), `${url}/workspace/${name}`)
  }

  await t.test('snapshots: live, template, restore, delete', async (t) => {
    await page.getByText('There is no snapshot.').waitFor()
    const { snapshot } = (await api('POST', '/snapshots', { boxId: box.id, name: 'before' })).json
    await row(page, 'before').getByText('available').waitFor()
    await press(page, 'Make a template: before')
    await page.getByLabel('Name of the template').fill('web')
    await submit(page, 'Make a template')
    await row(page, 'before').getByText('web').waitFor()
    t.match(await load('/snapshots'), { snapshots: [{ id: snapshot.id, templateName: 'web' }] })
    await press(page, 'Create a box: before')
    await page.getByLabel('Name of the new box').fill('restored')
    t.match(await page.getByRole('dialog').locator('code').textContent(), 'box restore before restored')
    await submit(page, 'Create the box')
    await page.getByRole('region', { name: 'Next steps with restored' }).waitFor()
    t.match(await load('/boxes?live=1&box=restored'), { boxes: [{ hostname: 'restored' }] })
    await press(page, 'Remove the template name: before')
    await submit(page, 'Remove the name')
    await page.getByRole('button', { name: 'Make a template: before' }).waitFor()
    await waitUntil('the box has its files', async () => {
      const { boxes } = await load('/boxes?live=1&box=restored')
      return boxes[0]?.observedState === 'running'
    })
    await press(page, 'Delete: before')
    await submit(page, 'Delete')
    await page.getByText('There is no snapshot.').waitFor()
    t.same(await load('/snapshots'), { snapshots: [] })
  })

  await t.test('environments: create, change, default, upgrade, delete', async (t) => {
    await open('environments', 'Environments')
    const command = page.getByRole('dialog').locator('code').last()
    const find = async (name: string) =>
      (await load('/environments')).environments.find((each: { name: string }) => each.name === name)
    await press(page, 'Create an environment')
    await page.getByLabel('Name', { exact: true }).fill('web')
    await page.getByLabel('Variables').fill('NODE_ENV=test\nMODE=a b')
    await page.getByText('More settings').click()
    await page.getByLabel('Repositories').fill('owner/name')
    await page.getByLabel('git: the git tokens of the workspace').check()
    t.equal(
      await command.textContent(),
      "box environments create web -e NODE_ENV=test -e 'MODE=a b' --repo owner/name --git",
    )
    await submit(page, 'Create')
    await row(page, 'web').getByText('variables MODE, NODE_ENV').waitFor()
    t.match(await find('web'), {
      latestVersionNo: 1,
      vars: [
        { name: 'MODE', value: 'a b' },
        { name: 'NODE_ENV', value: 'test' },
      ],
      repos: [{ repo: 'owner/name' }],
      toggles: { git: true, cloud: false },
    })
    await api('POST', '/boxes', { name: 'user', environment: 'web' })
    await row(page, 'web').getByRole('link', { name: 'user', exact: true }).waitFor()
    await press(page, 'Change: web')
    await page.getByLabel('Variables').fill('MODE=c')
    t.equal(
      await command.textContent(),
      'box environments unset web NODE_ENV && box environments set web MODE=c',
    )
    await submit(page, 'Change')
    await row(page, 'web').getByText('user (version 1)').waitFor()
    t.match(await find('web'), {
      latestVersionNo: 2,
      vars: [{ name: 'MODE', value: 'c' }],
      toggles: { git: true },
    })
    await press(page, 'Upgrade the boxes: web')
    await submit(page, 'Upgrade')
    await page.getByText('1 boxes of web have got version 2.').waitFor()
    await row(page, 'web').getByText('user (version 1)').waitFor({ state: 'detached' })
    t.match((await load('/boxes?live=1&box=user')).boxes, [{ environmentVersionNo: 2 }])
    await press(page, 'Make it the default: web')
    await submit(page, 'Make it the default')
    await page.getByRole('button', { name: 'Make it the default: web' }).waitFor({ state: 'detached' })
    t.match(await find('web'), { isDefault: true })
    await press(page, 'Delete: web')
    await submit(page, 'Delete')
    await page.getByText('There is no environment.').waitFor()
    t.same(await load('/environments'), { environments: [] })
  })

  await t.test('images: pull with progress, on other pages too, cancel, remove', async (t) => {
    await open('images', 'Images')
    await page.getByText('There is no image.').waitFor()
    const downloads = page.getByRole('region', { name: 'Downloads' })
    const item = (name: string) => downloads.getByRole('listitem').filter({ hasText: name })
    const pull = async (image: string) => {
      await press(page, 'Pull an image')
      await page.getByLabel('Image', { exact: true }).fill(image)
      t.equal(
        await page.getByRole('dialog').locator('code').textContent(),
        `box images pull ${image} --region us-east-1`,
      )
      await submit(page, 'Pull')
    }
    const finished = Promise.withResolvers<void>()
    const aborted = Promise.withResolvers<void>()
    images.registry.add('docker.io/library/alpine:3')
    images.download = async (_reference, onProgress, signal) => {
      // The request for the download is added to its listeners first.
      await Promise.resolve()
      onProgress({
        layers: [
          { id: 'a', status: 'complete', currentBytes: 1024, totalBytes: 1024 },
          { id: 'b', status: 'downloading', currentBytes: 1024, totalBytes: 3072 },
        ],
      })
      const canceled = new Promise((resolve) => signal.addEventListener('abort', resolve))
      await Promise.race([finished.promise, canceled])
      if (signal.aborted) aborted.resolve()
      signal.throwIfAborted()
    }
    await pull('alpine:3')
    await item('alpine:3').getByText('1 of 2 layers, 2 KiB of 4 KiB').waitFor()
    t.equal(await item('alpine:3').getByRole('progressbar').getAttribute('value'), '2048')
    await press(page, 'Cancel alpine:3 in us-east-1')
    await item('alpine:3').getByText('canceled').waitFor()
    await aborted.promise
    t.same(await load('/images'), { images: [], unavailable: [] }, 'the download has ended')
    await pull('debian:12')
    await item('debian:12').getByRole('progressbar').waitFor()
    await open('keys', 'API keys')
    await open('images', 'Images')
    await item('debian:12').getByRole('progressbar').waitFor()
    images.download = async () => undefined
    finished.resolve()
    await item('debian:12').getByText('has been downloaded').waitFor()
    await row(page, 'docker.io/library/debian:12').waitFor()
    await pull('missing:1')
    await item('missing:1').locator('.problem', { hasText: 'image_not_found' }).waitFor()
    await pull('alpine:3')
    await row(page, 'docker.io/library/alpine:3').waitFor()
    await press(page, 'Remove docker.io/library/alpine:3 in us-east-1')
    await submit(page, 'Remove')
    await row(page, 'docker.io/library/alpine:3').waitFor({ state: 'detached' })
    t.match(await load('/images'), { images: [{ reference: 'docker.io/library/debian:12' }] })
    await press(page, 'Clear the list')
    await downloads.waitFor({ state: 'detached' })
    problems.splice(0)
  })

  await t.test('keys: the secret is shown once, with levels and boxes; change, rotate, revoke', async (t) => {
    await open('keys', 'API keys')
    await press(page, 'Create a key')
    await page.getByLabel('What the key is for').fill('ci key')
    await page.getByLabel('What it may do').selectOption('only what is chosen here')
    t.ok(await page.getByRole('button', { name: 'Create the key' }).isDisabled(), 'it could do nothing')
    await page.getByLabel('Boxes', { exact: true }).selectOption('run')
    await page.getByLabel(box.hostname).check()
    t.match(
      await page.getByRole('dialog').locator('code').textContent(),
      `box keys create 'ci key' --expires 90d --access boxes=run --box ${box.hostname}`,
    )
    await submit(page, 'Create the key')
    const secret = page.getByRole('region', { name: 'The secret of the key ci key' })
    const first = await secret.locator('code').textContent()
    t.equal((await api('GET', '/boxes', undefined, { key: first })).status, 200, 'the secret works')
    const findKey = async () =>
      (await load('/keys')).keys.find(({ name }: { name: string }) => name === 'ci key')
    t.match(await findKey(), { access: { boxes: 'run' }, boxIds: [box.id], expiresAt: /^20/ })
    await press(page, 'Change ci key')
    await page.getByLabel('Boxes', { exact: true }).selectOption('read')
    await submit(page, 'Change the key')
    await row(page, 'ci key').getByText('reads boxes').waitFor()
    t.match(await findKey(), { access: { boxes: 'read' }, boxIds: [box.id] })
    await press(page, 'Rotate ci key')
    await submit(page, 'Rotate')
    await waitUntil(
      'the secret is another one',
      async () => (await secret.locator('code').textContent()) !== first,
    )
    const second = await secret.locator('code').textContent()
    t.equal((await api('GET', '/boxes', undefined, { key: first })).status, 401)
    t.equal((await api('GET', '/boxes', undefined, { key: second })).status, 200)
    await press(page, 'Hide')
    t.notMatch(await page.locator('main').textContent(), second ?? '')
    await press(page, 'Revoke ci key')
    await submit(page, 'Revoke')
    await row(page, 'ci key').waitFor({ state: 'detached' })
    t.equal((await api('GET', '/boxes', undefined, { key: second })).status, 401)
  })

  await t.test('members: invite, change, remove', async (t) => {
    await open('members', 'Members')
    await press(page, 'Invite a person')
    await page.getByLabel('Email address').fill('Ada@Example.com')
    await submit(page, 'Invite')
    await page.getByText('ada@example.com is invited.').waitFor()
    const find = async () =>
      (await load('/members')).members.find(({ email }: { email: string }) => email === 'ada@example.com')
    t.match(await find(), { role: 'member', status: 'invited' })
    await press(page, 'Change ada@example.com')
    await page.getByLabel('Role').selectOption('contractor')
    await submit(page, 'Change')
    await row(page, 'ada@example.com').getByText('contractor').waitFor()
    t.match(await find(), { role: 'contractor' })
    await press(page, 'Remove ada@example.com')
    await submit(page, 'Remove')
    await row(page, 'ada@example.com').waitFor({ state: 'detached' })
    t.equal(await find(), undefined)
  })

  await t.test('policies: edit and reset, with the keyboard only', async (t) => {
    await open('policies', 'Policies')
    const policies = async () => (await load('/workspace/policies')).policy
    const setting = (name: string) => page.locator('main').getByRole('listitem').filter({ hasText: name })
    await page.getByRole('button', { name: 'Edit Boxes of each member', exact: true }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByRole('textbox', { name: 'Boxes of each member' }).waitFor()
    t.equal(await page.evaluate('document.activeElement.tagName'), 'INPUT')
    await page.keyboard.type('7')
    await page.keyboard.press('Enter')
    await setting('Boxes of each member').getByText('7 boxes', { exact: true }).waitFor()
    t.match(await policies(), { memberBoxLimit: 7 })
    await waitForExpression(
      page,
      "document.activeElement.getAttribute('aria-label') === 'Edit Boxes of each member'",
    )
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await setting('Boxes of each member').getByText('No limit', { exact: true }).waitFor()
    t.match(await policies(), { memberBoxLimit: null })
    await press(page, 'Edit Quiet hours')
    await page.getByRole('group', { name: 'Days on which the period starts' }).getByLabel('Monday').check()
    await page.getByLabel('Time zone').fill('Europe/Berlin')
    await submit(page, 'Save')
    await setting('Quiet hours').getByText('Mon from 22:00 to 07:00; Europe/Berlin').waitFor()
    t.match(await policies(), { quietHours: { days: ['mon'], timezone: 'Europe/Berlin' } })
  })

  await t.test('audit log: filters, pages, CSV, hash chain', async (t) => {
    await open('audit', 'Audit log')
    await page.getByLabel('Kind').selectOption('policy.update')
    await press(page, 'Show')
    await waitUntil('only these are shown', async () => {
      const texts = await page.locator('.log li').allTextContents()
      return texts.length === 3 && texts.every((text) => text.includes('Owner changed policies: '))
    })
    await page.getByRole('heading', { level: 2, name: 'Today' }).waitFor()
    await page
      .getByRole('button', { name: /^Details of event/ })
      .first()
      .click()
    await page.locator('.log dl').getByText('policy.update').waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download as CSV' }).click()
    const lines = readFileSync(await (await download).path(), 'utf8')
      .trim()
      .split('\r\n')
    t.equal(lines.length, 4)
    t.ok(lines.slice(1).every((line) => line.includes('policy.update')))
    await press(page, 'Verify the log')
    const text = await page.getByText(/events are intact. Note the head/).textContent()
    t.match(text, /All \d+ events/)
    const [, head] = /--head (\d+):/.exec(text ?? '') ?? []
    t.equal(
      Number(head),
      (await load('/audit?kind=audit.export')).events[0].id,
      'the download is the newest event',
    )
  })

  await t.test('sessions: end another one', async (t) => {
    const other = await createTestSession(dashboard)
    await getAccountButton(page).click()
    await page.getByRole('menuitem', { name: 'Sessions' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor()
    await page.getByText('this session').waitFor()
    const count = await page.getByRole('row').count()
    await page.getByRole('button', { name: 'End the session of unknown program' }).first().click()
    await submit(page, 'End')
    await waitUntil('one row less', async () => (await page.getByRole('row').count()) === count - 1)
    const statuses = await Promise.all(
      [owner, other].map(async (session) => (await api('GET', '/session', undefined, session)).status),
    )
    t.same(statuses.sort(), [200, 401])
    owner = await createTestSession(dashboard)
  })

  await t.test('machines: the line is shown once, the machine joins live; the rollout', async (t) => {
    await open('machines', 'Machines')
    const line = page.getByRole('region', { name: 'Join a machine' })
    await line.getByRole('button', { name: 'Add a machine' }).click()
    await page.getByLabel('Name of the box').fill('server')
    await submit(page, 'Show the command')
    await line.getByText('Waiting for the machine').waitFor()
    const [token] = /bxe_\w+/.exec((await line.locator('code').textContent()) ?? '') ?? []
    t.match(await load('/machines'), { enrollments: [{ name: 'server' }] })
    const joined = await dashboard.send(
      'POST',
      '/agent/enroll',
      {
        ...{ token, agentTokenHash: 'a'.repeat(64), hostname: 'host', platform: 'linux-x64' },
        ...{ agentVersion: '0.1.0', cpus: 2, memoryBytes: 4 * 1024 ** 3 },
      },
      { key: null },
    )
    t.equal(joined.status, 201)
    await line.getByText('server has joined.').waitFor()
    t.equal(await line.getByRole('link', { name: 'Open server' }).getAttribute('href'), 'boxes/server')
    await row(page, 'server').first().waitFor()
    const revoke = page.getByRole('button', { name: /^Revoke the token/ })
    await revoke.waitFor({ state: 'detached' })
    await press(page, 'Add a machine')
    await page.getByLabel('Name of the box').fill('other')
    await submit(page, 'Show the command')
    await press(page, 'Revoke the token other')
    await submit(page, 'Revoke')
    await revoke.waitFor({ state: 'detached' })
    t.same(await load('/machines'), { enrollments: [] })
    await press(page, 'Change the rollout')
    await page.getByLabel('Percentage').fill('20')
    await page.getByLabel('Upgrades').selectOption('yes')
    await submit(page, 'Change')
    await page.getByText('New builds: 20 % of the boxes, paused').waitFor()
    t.match(await load('/agents'), { rollout: { share: 20, paused: true } })
  })

  await t.test('billing: the balance, the usage, the ledger and a payment', async (t) => {
    const { db } = dashboard.instance.context
    const usage = { kind: 'usage', debit: 'balance', credit: 'usage', amount_micros: 10_000, at: 1 } as const
    const of = { workspace_id: dashboard.instance.owner?.workspaceId ?? '', box_id: box.id, user_id: null }
    const entries = Array.from({ length: 60 }, (_, index) => ({
      ...usage,
      ...of,
      ...{ cause: `usage:${index}`, since: index, until: index + 1, note: null },
    }))
    await db.insertInto('billing_entries').values(entries).execute()
    await open('billing', 'Billing')
    await page.getByText(/^\$1004\.\d\d$|^\$1005\.00$/).waitFor()
    await row(page, box.hostname)
      .getByText(/^<?\$0\.\d+$/)
      .waitFor()
    await page.getByText(/^<?\$0\.\d+ so far in [A-Z][a-z]+\./).waitFor()
    await page.getByRole('img', { name: 'The cost of each day by box' }).waitFor()
    await page.getByText('The days as a table').click()
    await page
      .getByRole('row', { name: new RegExp(`^\\d{4}-\\d\\d-\\d\\d .* ${box.hostname} <?\\$`) })
      .waitFor()
    await press(page, 'By member')
    await row(page, 'Owner')
      .getByText(/^<?\$0\.\d+$/)
      .waitFor()
    t.equal(new URL(page.url()).search, '?by=member')
    await press(page, 'By box')
    await page.getByRole('row', { name: / free credit \$5\.00 / }).waitFor()
    const ledger = page.getByRole('row', { name: / usage -\$0\.01 / })
    await ledger.first().waitFor()
    const shown = await ledger.count()
    t.ok(shown < 60)
    const { promise, resolve } = Promise.withResolvers<void>()
    await page.route('**/api/v1/billing/entries?*', async (route) => {
      await promise
      await route.fallback()
    })
    const pages: string[] = []
    page.on('request', (request) => pages.push(request.url()))
    await page.getByRole('button', { name: 'Load more' }).dblclick()
    resolve()
    await waitUntil('the older entries', async () => (await ledger.count()) === 60)
    t.equal(pages.filter((path) => path.includes('/entries?')).length, 1, 'a double click loads one page')
    t.equal(await page.getByRole('button', { name: 'Load more' }).count(), 0, 'this is the last page')
    await page.unroute('**/api/v1/billing/entries?*')

    await page.route('**/api/v1/usage?*', (route) => route.abort())
    const months = page.getByLabel('Month in UTC')
    await months.selectOption({ index: 1 })
    await page.locator('section', { has: months }).locator('.problem', { hasText: 'no_response' }).waitFor()
    t.equal(await page.getByText(/ in [A-Z][a-z]+\./).count(), 0, 'no usage of another month')
    t.equal(await row(page, box.hostname).count(), 0)
    await page.unroute('**/api/v1/usage?*')
    t.match(problems.splice(0), [/ERR_FAILED/])
    t.equal(await page.getByRole('button', { name: 'Add credit' }).count(), 0, 'the operator adds credit')

    const bodies: unknown[] = []
    await page.route('**/api/v1/billing', async (route) => {
      const response = await route.fetch()
      const json = { ...(await response.json()), provider: 'stripe', hold: 'mining' }
      await route.fulfill({ response, json })
    })
    await page.route('**/api/v1/billing/checkout', (route) => {
      bodies.push(route.request().postDataJSON())
      return bodies.length === 1
        ? route.fulfill({ status: 502, json: { error: 'internal_error', message: 'No payment now.' } })
        : route.fulfill({ json: { url: `${url}/workspace/billing?paid=1` } })
    })
    await page.reload()
    await page.getByText('An operator has paused the workspace: its boxes appear to mine').waitFor()
    await press(page, 'Add credit')
    await page.getByLabel('Amount in dollars').fill('12.50')
    await page.getByRole('button', { name: 'Continue to the payment' }).click()
    await page.getByText('No payment now.').waitFor()
    await page.getByRole('button', { name: 'Continue to the payment' }).click()
    await page.waitForURL('**/workspace/billing?paid=1')
    t.same(bodies, [{ amountUsd: 12.5 }, { amountUsd: 12.5 }])
    t.match(problems.splice(0), [/502/], 'the browser logs the refused request')
    await page.unrouteAll()

    await api('POST', `/boxes/${box.id}/suspend`)
    await dashboard.waitForState(box.id, 'suspended')
    await db.updateTable('billing_accounts').set({ balance_micros: 0 }).execute()
    await page.goto(`${url}/boxes/${box.hostname}`)
    await chooseAction(page, box.hostname, 'Resize')
    const dialog = page.getByRole('dialog')
    await dialog
      .getByRole('option', { name: /^ultra: .* \(the balance is too low\)$/ })
      .waitFor({ state: 'attached' })
    t.equal(await dialog.getByRole('option', { name: /^nano: .*\)$/ }).count(), 0, 'a smaller one costs less')
    t.equal(await dialog.getByText(/^The balance must last/).count(), 0)
    await dialog.getByLabel('Tier').selectOption('ultra')
    await dialog.getByText(/^The balance must last for 4 hours/).waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${url}/?create=`)
    await dialog.getByText(/^The balance must last for 4 hours/).waitFor()
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'insufficient_balance' }).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await press(page, `Wake ${box.hostname}`)
    await page.getByText('wake_rejected').waitFor()
    t.match(problems.splice(0), [/409/, /409/])
  })

  await t.test('AWS roles: what is missing, in the words of the API', async (t) => {
    await open('aws', 'AWS roles')
    const { enabled, missing } = await load('/aws-roles')
    t.equal(enabled, false)
    t.match(missing, [/BOXWOOD_OIDC_ISSUER/])
    await page.getByText(missing[0]).waitFor()
    await page.getByRole('heading', { name: 'AWS roles are not set up.' }).waitFor()
    t.equal(await page.getByRole('button', { name: /Connect|Create/ }).count(), 0)
  })

  await t.test('settings: names, and zero data retention', async (t) => {
    await open('settings', 'Settings')
    await press(page, 'Rename')
    await page.getByLabel('Name', { exact: true }).fill('research')
    await submit(page, 'Rename')
    await page.locator('.brand').getByText('research').waitFor()
    await press(page, 'Turn on zero data retention')
    await submit(page, 'Turn on and erase')
    await page.getByRole('button', { name: 'Turn off zero data retention' }).waitFor()
    t.match(await load('/workspace'), { workspace: { name: 'research', zeroDataRetention: true } })
    await press(page, 'Change your name')
    await page.getByLabel('Name', { exact: true }).fill('Grace')
    await submit(page, 'Change')
    await page.getByRole('region', { name: 'You' }).getByText('Grace', { exact: true }).waitFor()
    t.match(await load('/session'), { user: { name: 'Grace' } })
  })

  await t.test('settings: switch to another workspace, close and reopen it', async (t) => {
    const { db } = dashboard.instance.context
    await db.updateTable('users').set({ email: 'grace@example.com' }).where('id', '=', owner.userId).execute()
    await api('POST', '/workspaces', { name: 'lab' }, owner)
    await page.reload()
    await press(page, 'Switch to another workspace')
    await page.getByRole('menuitemradio', { name: 'lab (owner)' }).click()
    await page.locator('.brand').getByText('lab').waitFor()
    await open('settings', 'Settings')
    const loadWorkspace = async () =>
      (await (await page.request.get(`${url}/api/v1/workspace`)).json()).workspace
    await press(page, 'Close the workspace')
    const dialog = page.getByRole('dialog')
    t.ok(await dialog.getByRole('button', { name: 'Close the workspace' }).isDisabled())
    await dialog.getByRole('textbox').fill('lab')
    await submit(page, 'Close the workspace')
    await page.getByText('The workspace is closing.').waitFor()
    t.match(await loadWorkspace(), { name: 'lab', closingAt: /^20/ })
    await press(page, 'Reopen the workspace')
    await submit(page, 'Reopen')
    await page.getByRole('button', { name: 'Close the workspace' }).waitFor()
    t.match(await loadWorkspace(), { name: 'lab', closingAt: null })
    await press(page, 'Switch to another workspace')
    await page.getByRole('menuitemradio', { name: 'research (owner)' }).click()
    await page.locator('.brand').getByText('research').waitFor()
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
