// Secrets in a real browser: what each action did is checked with the API, and no page keeps a value that was sent.
import type { Page } from 'playwright-core'
import t from 'tap'
import type { Secret } from '../../../shared/api/secrets.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'
import { createTestSession } from '../../support/session.ts'

const VALUES = ['first-value-8f3a', 'second-value-61c0', 'refused-value-9d2e']

/** Everything that the page has stored or shows, with the values of its fields. */
const readPage = (page: Page) =>
  page.evaluate<string>(
    `(async () => JSON.stringify([
      document.documentElement.outerHTML,
      [...document.querySelectorAll('input, textarea, select')].map(({ value }) => value),
      location.href, document.title, document.cookie, history.state, window.name,
      { ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys(),
    ]))()`,
  )

t.test('secrets', { skip: NO_BROWSER }, async (t) => {
  const dashboard = await openDashboard(t, () => '/workspace/secrets', { machines: 'fake' })
  const { api, box, page, problems, url } = dashboard
  const owner = await createTestSession(dashboard)
  const member = await createTestSession(dashboard, 'member')
  const load = async (path: string) => (await api('GET', path, undefined, owner)).json
  const find = async (name = 'TOKEN'): Promise<Secret> =>
    (await load('/secrets')).secrets.find((secret: Secret) => secret.name === name)
  const dialog = page.getByRole('dialog')
  const row = page.getByRole('row', { name: /^TOKEN / })
  const command = dialog.locator('.command code')
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const send = (label: string) => dialog.getByRole('button', { name: label, exact: true }).click()
  async function submit(label: string): Promise<void> {
    await send(label)
    await dialog.waitFor({ state: 'detached' })
  }
  const requests: string[] = []
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`))

  await t.test('create: the value is sent once, and the page does not keep it', async (t) => {
    await page.getByText('There is no secret.').waitFor()
    await press('Create a secret')
    await dialog.getByLabel('Name', { exact: true }).fill('token')
    const value = dialog.getByLabel('Value')
    t.equal(await value.getAttribute('type'), 'password')
    t.equal(await value.getAttribute('autocomplete'), 'off')
    await value.fill(VALUES[2] ?? '')
    t.ok(await dialog.getByRole('button', { name: 'Create', exact: true }).isDisabled(), 'it needs a host')
    await dialog.getByLabel('Hosts').fill(' api.example.com\n\n*.example.org')
    await send('Create')
    await dialog.locator('.problem', { hasText: 'invalid_name' }).waitFor()
    t.match(problems.splice(0), [/400/], 'the browser logs the refused request')
    await dialog.getByLabel('Name', { exact: true }).fill('TOKEN')
    await value.fill(VALUES[0] ?? '')
    await dialog.getByLabel('Description').fill('for tests')
    t.equal(
      await command.textContent(),
      "box secrets set TOKEN --host api.example.com --host '*.example.org' --description 'for tests'",
    )
    await submit('Create')
    await row.getByText('all of the workspace that are not restricted').waitFor()
    t.match(await find(), {
      hosts: ['api.example.com', '*.example.org'],
      description: 'for tests',
      scope: 'workspace',
      lastRotatedAt: null,
    })
  })

  await t.test('rotate', async (t) => {
    await press('Rotate: TOKEN')
    await dialog.getByLabel('New value').fill(VALUES[1] ?? '')
    t.equal(await command.textContent(), 'box secrets rotate TOKEN')
    await submit('Rotate')
    await row.locator('time').waitFor()
    t.match(await find(), { lastRotatedAt: /^20/ })
  })

  await t.test('no value is in the page, its storage or a URL', async (t) => {
    const text = await readPage(page)
    t.match(text, 'TOKEN')
    for (const value of VALUES) t.notOk(text.includes(value), 'the page')
    for (const value of VALUES) t.notOk(requests.join('\n').includes(value), 'the URLs of requests')
    await press('Create a secret')
    t.equal(await dialog.getByLabel('Value').inputValue(), '', 'the next form is empty')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  })

  await t.test('change: the page warns of new hosts', async (t) => {
    await press('Change: TOKEN')
    await dialog.getByLabel('Hosts').fill('api.example.com\nother.example.net')
    await dialog.getByText('The value is disclosed to other.example.net.').waitFor()
    await dialog.getByLabel('Description').fill('')
    t.equal(
      await command.textContent(),
      "box secrets set TOKEN --keep-value --host api.example.com --host other.example.net --description ''",
    )
    await submit('Change')
    await row.getByText('api.example.com, other.example.net').waitFor()
    t.match(await find(), { hosts: ['api.example.com', 'other.example.net'], description: null })
    await press('Change: TOKEN')
    await dialog.getByLabel('Hosts').fill('')
    t.ok(await dialog.getByRole('button', { name: 'Change', exact: true }).isDisabled())
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  })

  await t.test('a dialog that loads late does not replace the one that was opened since', async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    await page.route('**/api/v1/members', async (route) => {
      await promise
      await route.fallback()
    })
    const requested = page.waitForRequest('**/api/v1/members')
    await press('Create a secret')
    await requested
    await press('Rotate: TOKEN')
    await dialog.getByLabel('New value').fill('typed')
    const responded = page.waitForResponse('**/api/v1/members')
    resolve()
    await responded
    await page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    )
    t.equal(await dialog.getByRole('heading').textContent(), 'Rotate TOKEN')
    t.equal(await dialog.getByLabel('New value').inputValue(), 'typed')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.unroute('**/api/v1/members')
    await page.route('**/api/v1/members', (route) => route.abort())
    await press('Create a secret')
    await page.locator('.problem', { hasText: 'no_response' }).waitFor()
    t.match(problems.splice(0), [/ERR_FAILED/])
    await page.unroute('**/api/v1/members')
  })

  await t.test('grants: to a box and a member; without one, no box may use the secret', async (t) => {
    await press('Grants and usage: TOKEN')
    await page.getByText('No request has used the secret.').waitFor()
    await press('Grant')
    await dialog.getByLabel(box.hostname).check()
    await dialog.getByLabel(`${member.userId}@example.com`).check()
    t.equal(
      await command.textContent(),
      `box secrets grant TOKEN ${box.hostname} ${member.userId}@example.com`,
    )
    await submit('Grant')
    const remove = (name: string) => press(`Remove the grant of ${name}`)
    await remove(`boxes of ${member.userId}@example.com`)
    await submit('Remove')
    t.match(await find(), { scope: 'granted', grants: [{ boxId: box.id }] })
    await remove(box.hostname)
    await dialog.getByText('no box may use the secret then').waitFor()
    t.equal(await command.textContent(), `box secrets ungrant TOKEN ${box.hostname}`)
    await submit('Remove')
    await row.getByText('none: it has no grants').waitFor()
    t.match(await find(), { scope: 'granted', grants: [] })
    await press('Open to the workspace')
    t.equal(await command.textContent(), 'box secrets open TOKEN --yes')
    await submit('Open')
    await row.getByText('all of the workspace that are not restricted').waitFor()
    t.match(await find(), { scope: 'workspace', grants: [] })
  })

  await t.test('usage', async () => {
    const { id } = await find()
    const { db } = dashboard.instance.context
    const workspaceId = dashboard.instance.owner?.workspaceId ?? ''
    const use = { secret_id: id, workspace_id: workspaceId, box_id: box.id, host: 'api.example.com' }
    await db
      .insertInto('secret_uses')
      .values({ ...use, first_at: 1, last_at: 2, count: 42 })
      .execute()
    await press('Hide')
    await press('Grants and usage: TOKEN')
    await page.getByRole('row', { name: new RegExp(`^${box.hostname} api.example.com 42 `) }).waitFor()
  })

  await t.test('the details of another secret do not have the usage of the first one', async (t) => {
    await api('POST', '/secrets', { name: 'OTHER', value: 'v', hosts: ['a.example.com'] }, owner)
    const { secrets } = await load('/secrets')
    const other = secrets.find(({ name }: Secret) => name === 'OTHER')
    await page.getByRole('button', { name: 'Load again' }).first().click()
    await page.route(`**/api/v1/secrets/${other.id}/usage`, (route) => route.abort())
    await press('Grants and usage: OTHER')
    const details = page.getByRole('region', { name: 'Details of OTHER' })
    await details.locator('.problem', { hasText: 'no_response' }).waitFor()
    t.equal(await details.getByRole('row').count(), 0)
    await page.unroute(`**/api/v1/secrets/${other.id}/usage`)
    await api('DELETE', `/secrets/${other.id}`, undefined, owner)
    t.match(problems.splice(0), [/ERR_FAILED/])
  })

  await t.test('the page of a box: mount, unmount, and why a restricted box has none', async (t) => {
    await page.goto(`${url}/boxes/${box.hostname}`)
    await page.getByText('No secret is mounted.').waitFor()
    await press(`Mount a secret: ${box.hostname}`)
    await dialog.getByLabel('Variable').fill('1')
    await send('Mount')
    await dialog.locator('.problem', { hasText: 'invalid_env_name' }).waitFor()
    t.match(problems.splice(0), [/400/], 'the browser logs the refused request')
    await dialog.getByLabel('Variable').fill('API_TOKEN')
    t.equal(await command.textContent(), `box mount ${box.hostname} TOKEN --as API_TOKEN`)
    await submit('Mount')
    await page.getByRole('row', { name: /^API_TOKEN TOKEN / }).waitFor()
    const mounts = await load(`/boxes/${box.id}/secrets`)
    t.match(mounts.mounts, [{ envName: 'API_TOKEN', secret: { name: 'TOKEN' } }])
    await press(`Mount a secret: ${box.hostname}`)
    await dialog.getByLabel('Secret', { exact: true }).selectOption('')
    await dialog.getByLabel('For').selectOption('npm')
    t.equal(await dialog.getByLabel('Hosts').inputValue(), 'registry.npmjs.org', 'the service has its hosts')
    await dialog.getByLabel('Value').fill('npm_value')
    const create = `box secrets set NPM_TOKEN --host registry.npmjs.org --grant ${box.hostname}`
    t.equal(await command.textContent(), `${create} && box mount ${box.hostname} NPM_TOKEN`)
    await submit('Mount')
    await page.getByRole('row', { name: /^NPM_TOKEN NPM_TOKEN / }).waitFor()
    const [mounted] = (await load('/secrets')).secrets.filter(
      ({ name }: { name: string }) => name === 'NPM_TOKEN',
    )
    t.match(mounted, { scope: 'granted', hosts: ['registry.npmjs.org'], grants: [{ boxId: box.id }] })
    await press('Unmount: NPM_TOKEN')
    await submit('Unmount')
    await page.getByRole('row', { name: /^NPM_TOKEN / }).waitFor({ state: 'detached' })
    await api('DELETE', `/secrets/${mounted.id}`, undefined, owner)
    await press('Unmount: API_TOKEN')
    t.equal(await command.textContent(), `box unmount ${box.hostname} API_TOKEN`)
    await submit('Unmount')
    await page.getByText('No secret is mounted.').waitFor()
    t.match(await load(`/boxes/${box.id}/secrets`), { mounts: [] })
    await api('POST', '/boxes', { name: 'restricted', restricted: true })
    await page.goto(`${url}/boxes/restricted`)
    await page.getByText('The box is restricted: it gets no secrets.').waitFor()
    t.ok(await page.getByRole('button', { name: 'Mount a secret: restricted' }).isDisabled())
  })

  await t.test('delete', async (t) => {
    await page.goto(`${url}/workspace/secrets`)
    await press('Delete: TOKEN')
    t.equal(await command.textContent(), 'box secrets rm TOKEN')
    await submit('Delete')
    await page.getByText('There is no secret.').waitFor()
    t.same(await load('/secrets'), { secrets: [] })
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
