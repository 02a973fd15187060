// The first actions of a user in a real browser, from the sign-in to the deletion of a box: what each did is checked with the API.
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { chooseAction, collectProblems, signIn, waitForExpression } from '../../support/dashboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('the dashboard', { skip: NO_BROWSER }, async (t) => {
  const coordinator = await startTestCoordinator(t)
  const { pageUrl: url, api, dataDir } = coordinator
  const [first] = (await api('GET', '/boxes')).json.boxes
  await coordinator.waitForState(first.id, 'running')
  const page = await (await startBrowser(t)).newPage()
  const problems = collectProblems(page)
  const findBox = async (name: string) =>
    (await api('GET', `/boxes?live=1&box=${name}`)).json.boxes[0] as typeof first | undefined
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^Choose ${name} `) })

  await t.test('a visitor signs in, and returns to the page', async (t) => {
    await page.goto(`${url}/boxes/${first.hostname}`)
    await page.waitForURL(/\/sign-in\?next=/)
    t.ok(problems.splice(0).every((text) => text.includes('401')))
    await signIn(page, dataDir)
    await page.getByRole('heading', { level: 2, name: 'Events' }).waitFor()
    t.equal(page.url(), `${url}/boxes/${first.hostname}`)
    problems.splice(0)
  })

  await t.test('the page of a box, and the navigation', async (t) => {
    t.match((await page.locator('dl').allTextContents()).join(), first.id)
    await page.getByRole('link', { name: 'Boxes', exact: true }).click()
    await row(first.hostname).waitFor()
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Boxes', 'the heading has the focus')
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: first.hostname }).waitFor()
    await page.goForward()
    await row(first.hostname).waitFor()
  })

  await t.test('create, with an error and a second attempt', async (t) => {
    await page.getByRole('button', { name: 'New box' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill(first.hostname)
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'name_taken' }).waitFor()
    problems.splice(0)
    await dialog.getByLabel('Name', { exact: true }).fill('second')
    await dialog.getByRole('radio', { name: /^nano/ }).check({ force: true })
    t.match(await dialog.locator('code').first().textContent(), 'box create second --tier nano')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('region', { name: 'Next steps with second' }).waitFor()
    t.match(await findBox('second'), { tier: 'nano' })
    await row('second').locator('.state.running').waitFor()
  })

  await t.test('suspend and wake are shown live', async (t) => {
    await page.getByRole('button', { name: 'Suspend second' }).click()
    await page.getByRole('button', { name: 'Wake second' }).waitFor()
    t.match(await findBox('second'), { observedState: 'suspended' })
    await page.getByRole('button', { name: 'Wake second' }).click()
    await row('second').locator('.state.running').waitFor()
    t.match(await findBox('second'), { desiredState: 'running' })
  })

  await t.test('snapshot and fork', async (t) => {
    await chooseAction(page, 'second', 'Snapshot')
    await page.getByRole('dialog').getByLabel('Name of the snapshot').fill('before')
    await page.getByRole('button', { name: 'Take the snapshot' }).click()
    await page.getByText('The snapshot before is being taken.').waitFor()
    t.match((await api('GET', '/snapshots')).json.snapshots, [{ name: 'before' }])
    await chooseAction(page, 'second', 'Fork')
    await page.getByRole('dialog').getByLabel('Name of the new box').fill('third')
    await page.getByRole('button', { name: 'Fork', exact: true }).click()
    await row('third').waitFor()
    t.ok(await findBox('third'))
  })

  await t.test('delete needs the name, and the focus stays on the page', async (t) => {
    await waitUntil('third runs', async () => (await findBox('third'))?.observedState === 'running')
    await chooseAction(page, 'third', 'Delete')
    const dialog = page.getByRole('dialog')
    const submit = dialog.getByRole('button', { name: 'Delete', exact: true })
    await dialog.getByLabel('Type third').fill('thir')
    t.ok(await submit.isDisabled())
    await dialog.getByLabel('Type third').fill('third')
    await submit.click()
    await row('third').waitFor({ state: 'detached' })
    t.equal(await page.evaluate('document.activeElement.tagName'), 'H1')
    await waitUntil('third is deleted', async () => (await findBox('third')) === undefined)
  })

  await t.test('the filter', async (t) => {
    await page.getByLabel('Filter').fill('nano')
    await row(first.hostname).waitFor({ state: 'detached' })
    t.equal(await page.getByRole('row').count(), 2)
    await page.getByLabel('Filter').fill('')
  })

  await t.test('a tab of another build says so, and loads the document at the next navigation', async () => {
    await page.route('**/dashboard/build.json', (route) => route.fulfill({ json: { buildId: 'other' } }))
    await page.goto(url)
    await page.getByText('newer version of this page').waitFor()
    await page.evaluate('window.isOld = true')
    await page.getByRole('link', { name: 'second', exact: true }).first().click()
    await page.getByRole('heading', { level: 1, name: 'second' }).waitFor()
    await waitForExpression(page, 'window.isOld === undefined')
    await page.unroute('**/dashboard/build.json')
  })

  t.same(problems, [], 'no violation of the policy and no error')

  await t.test('a lost connection is a banner', async () => {
    await page.goto(url)
    await row('second').waitFor()
    await coordinator.close()
    await page.getByText('The connection to the coordinator is lost').waitFor()
    t.ok(await row('second').isVisible(), 'the boxes are still shown')
  })
})
