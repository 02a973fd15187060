// The page of all boxes, and the settings of a box, in a real browser: what each action did is checked with the API.
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { chooseAction, openDashboard } from '../../support/dashboard.ts'
import { waitUntil } from '../../support/wait-until.ts'

t.test('boxes', { skip: NO_BROWSER }, async (t) => {
  const dashboard = await openDashboard(t, () => '/boxes/', { machines: 'fake' })
  const { api, box, page, problems, url } = dashboard
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^Choose ${name} `) })
  const list = async (): Promise<(typeof box)[]> => (await api('GET', '/boxes?live=1')).json.boxes
  const find = async (name: string) => (await list()).find(({ hostname }) => hostname === name)
  const dialog = page.getByRole('dialog')
  async function submit(label: string): Promise<void> {
    await dialog.getByRole('button', { name: label, exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
  }

  await t.test('create with more settings; a lost response does not create a second box', async (t) => {
    const keys: (string | undefined)[] = []
    await page.route('**/api/v1/boxes', async (route) => {
      if (route.request().method() !== 'POST') return route.fallback()
      keys.push(route.request().headers()['idempotency-key'])
      const response = await route.fetch()
      return keys.length === 1 ? route.abort() : route.fulfill({ response })
    })
    await page.getByRole('button', { name: 'New box' }).click()
    await dialog.getByLabel('Name', { exact: true }).fill('second')
    await dialog.getByText('More settings').click()
    await dialog.getByRole('option', { name: /us-east-1/ }).waitFor({ state: 'attached' })
    await dialog.getByLabel('Region').selectOption('us-east-1')
    await dialog.getByLabel('Suspend when idle for').fill('45')
    t.equal(
      await dialog.locator('code').first().textContent(),
      'box create second --region us-east-1 --auto-pause 45m',
    )
    await submit('Create')
    problems.splice(0)
    await page.getByRole('region', { name: 'Next steps with second' }).waitFor()
    t.equal(keys.length, 2)
    t.equal(keys[0], keys[1], 'the same idempotency key')
    t.equal((await list()).length, 2)
    t.match(await find('second'), { region: 'us-east-1', autoPauseMin: 45 })
    t.equal(await page.evaluate('document.activeElement.textContent'), 'New box', 'the focus returns')
    await page.unroute('**/api/v1/boxes')
    await row('second').locator('.state.running').waitFor()
  })

  await t.test('a closing workspace is named before the request', async () => {
    await page.route('**/api/v1/workspace', async (route) => {
      const response = await route.fetch()
      const { workspace } = await response.json()
      const closingAt = '2026-01-01T00:00:00.000Z'
      await route.fulfill({ response, json: { workspace: { ...workspace, closingAt } } })
    })
    for (const open of [
      () => page.getByRole('button', { name: 'New box' }).click(),
      () => chooseAction(page, box.hostname, 'Fork'),
    ]) {
      await open()
      await dialog.getByText('The workspace is closing, and no box can be created.').waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
    await page.unroute('**/api/v1/workspace')
  })

  await t.test('the response of a closed dialog does not close the next one', async (t) => {
    /** Sends the dialog, and closes it. Returns a function that lets the response pass. */
    async function sendAndClose(path: string, label: string): Promise<() => Promise<void>> {
      const { promise, resolve } = Promise.withResolvers<void>()
      await page.route(path, async (route) => {
        if (route.request().method() !== 'POST') return route.fallback()
        const response = await route.fetch()
        await promise
        await route.fulfill({ response })
      })
      const sent = page.waitForRequest((request) => request.method() === 'POST')
      await dialog.getByRole('button', { name: label, exact: true }).click()
      await sent
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
      return async () => {
        const responded = page.waitForResponse((response) => response.request().method() === 'POST')
        resolve()
        await responded
        await page.unroute(path)
      }
    }
    await chooseAction(page, box.hostname, 'Fork')
    await dialog.getByLabel('Name of the new box').fill('forked')
    await dialog.getByLabel('Tier').selectOption('nano')
    t.equal(await dialog.locator('code').textContent(), `box fork ${box.hostname} forked --tier nano`)
    const releaseFork = await sendAndClose(`**/api/v1/boxes/${box.id}/fork`, 'Fork')
    await chooseAction(page, box.hostname, 'Delete')
    await dialog.getByRole('textbox').fill('typed')
    await releaseFork()
    await page.getByRole('region', { name: 'Next steps with forked', includeHidden: true }).waitFor()
    t.equal(await dialog.getByRole('textbox').inputValue(), 'typed')
    t.equal((await find('forked'))?.tier, 'nano')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'New box' }).click()
    await dialog.getByLabel('Name', { exact: true }).fill('late')
    const releaseCreate = await sendAndClose('**/api/v1/boxes', 'Create')
    await page.getByRole('button', { name: 'New box' }).click()
    await dialog.getByLabel('Name', { exact: true }).fill('typed')
    await releaseCreate()
    await page.getByRole('region', { name: 'Next steps with late', includeHidden: true }).waitFor()
    t.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'typed')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    for (const name of ['forked', 'late']) await api('DELETE', `/boxes/${(await find(name))?.id}`)
    for (const name of ['forked', 'late']) await row(name).waitFor({ state: 'detached' })
  })

  await t.test('several boxes: suspend, wake, delete', async (t) => {
    const { json } = await api('POST', '/boxes', { name: 'third' })
    await dashboard.waitForState(json.box.id, 'running')
    const choose = async () => {
      for (const name of ['second', 'third']) await page.getByLabel(`Choose ${name}`).check()
    }
    const states = async () => [(await find('second'))?.observedState, (await find('third'))?.observedState]
    await choose()
    await page.getByRole('button', { name: 'Suspend 2' }).click()
    t.same(await dialog.locator('li').allTextContents(), ['second', 'third'])
    t.equal(await dialog.locator('code').textContent(), 'box suspend second third')
    await submit('Suspend')
    await page.getByText('2 of 2 are being suspended.').waitFor()
    await waitUntil('both are suspended', async () =>
      (await states()).every((state) => state === 'suspended'),
    )
    await row('third').locator('.state.suspended').waitFor()
    await page.getByLabel('Filter').fill('third')
    await page.getByLabel('Choose all shown boxes').check()
    await page.getByRole('button', { name: 'Wake 1' }).click()
    await submit('Wake')
    await waitUntil('third runs', async () => (await states())[1] === 'running')
    t.equal((await states())[0], 'suspended', 'a box that the filter hides is not chosen')
    await page.getByLabel('Filter').fill('')
    await choose()
    await page.getByRole('button', { name: 'Delete 2' }).click()
    t.ok(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled())
    await dialog.getByRole('textbox').fill('2')
    await submit('Delete')
    await waitUntil('one box is left', async () => (await list()).length === 1)
    await row('second').waitFor({ state: 'detached' })
    t.not(await page.evaluate('document.activeElement.tagName'), 'BODY', 'the focus is not lost')
  })

  await t.test('a box that fails is named, and the others are done', async (t) => {
    const { json } = await api('POST', '/boxes', { name: 'fourth' })
    await dashboard.waitForState(json.box.id, 'running')
    await page.route(`**/api/v1/boxes/${box.id}/suspend`, (route) =>
      route.fulfill({ status: 409, json: { error: 'box_busy', message: 'Not now.' } }),
    )
    for (const name of [box.hostname, 'fourth']) await page.getByLabel(`Choose ${name}`).check()
    await page.getByRole('button', { name: 'Suspend 2' }).click()
    await submit('Suspend')
    await page.getByText('1 of 2 are being suspended.').waitFor()
    t.match(
      await page.getByRole('alert').filter({ hasText: 'Not now' }).textContent(),
      `${box.hostname}: Not now. box_busy`,
    )
    await dashboard.waitForState(json.box.id, 'suspended')
    await page.unroute(`**/api/v1/boxes/${box.id}/suspend`)
    problems.splice(0)
  })

  await t.test('a box that does not start says why, in the list and on its page', async (t) => {
    const { promise: release, resolve } = Promise.withResolvers<void>()
    dashboard.infra.before.create = () => release
    t.teardown(resolve)
    const { json } = await api('POST', '/boxes', { name: 'stuck' })
    const path = `**/api/v1/boxes/${json.box.id}`
    await page.route(path, async (route) => {
      const response = await route.fetch()
      const job = { op: 'create', step: 'connect', attempt: 4, lastError: 'No agent.', nextRetryAt: null }
      await route.fulfill({ response, json: { ...(await response.json()), job } })
    })
    await row('stuck').getByText('Attempt 4 has failed: No agent.').waitFor()
    await row('stuck').getByRole('link', { name: 'stuck' }).click()
    const section = page.getByRole('region', { name: 'Job' })
    await section.getByText(`boxes/${json.box.id}/log in the data directory`).waitFor()
    t.match(await section.textContent(), /No agent\..*box doctor/)
    // The page must not ask for the box when it is deleted.
    await page.goto('about:blank')
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await api('DELETE', `/boxes/${json.box.id}`)
    delete dashboard.infra.before.create
    resolve()
    await page.goto(`${url}/boxes/`)
  })

  await t.test('settings: rename, schedule, resize, move, template, stop', async (t) => {
    const open = (label: string, name: string) => chooseAction(page, name, label)
    await row(box.hostname).getByRole('link').click()
    await open('Rename', box.hostname)
    await dialog.getByRole('textbox').fill('renamed')
    await submit('Rename')
    await page.getByRole('heading', { level: 1, name: 'renamed' }).waitFor()
    await open('Schedule', 'renamed')
    t.equal(page.url(), `${url}/boxes/renamed`)
    await dialog.getByLabel('Suspend when idle for').fill('120')
    await dialog.getByLabel('Snapshot every').fill('24')
    await submit('Set')
    await page.getByText('after 120 minutes').waitFor()
    t.match(await find('renamed'), { id: box.id, autoPauseMin: 120, autoSnapshotHours: 24 })
    await open('Resize', 'renamed')
    await dialog.getByLabel('Tier').selectOption('flow')
    await submit('Resize')
    await waitUntil('it has the tier', async () => (await find('renamed'))?.tier === 'flow')
    await dashboard.waitForState(box.id, 'running')
    await open('Move', 'renamed')
    await dialog.getByLabel('Region').selectOption('eu-central-1')
    await submit('Move')
    await waitUntil('it is in the region', async () => (await find('renamed'))?.region === 'eu-central-1')
    await dashboard.waitForState(box.id, 'running')
    await open('Make a template', 'renamed')
    await dialog.getByRole('textbox').fill('web')
    await submit('Make a template')
    await page.getByText('The template web is being taken.').waitFor()
    t.match((await api('GET', '/snapshots')).json.snapshots, [{ templateName: 'web', boxId: box.id }])
    await open('Stop', 'renamed')
    await submit('Stop')
    await dashboard.waitForState(box.id, 'suspended')
    t.match(await find('renamed'), { suspendedAs: 'stopped' })
  })

  await t.test('the command palette, with the keyboard only', async (t) => {
    const palette = page.getByRole('combobox', { name: 'Box, page or action' })
    await page.keyboard.press('Control+k')
    await palette.waitFor()
    await page.keyboard.type('audit')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor()
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Audit log')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('wake renamed')
    const closed = await dialog.elementHandle()
    await page.keyboard.press('Enter')
    await dashboard.waitForState(box.id, 'running')
    await palette.waitFor({ state: 'detached' })
    await page.keyboard.press('Control+k')
    await palette.waitFor()
    // A busy browser sends the event of the closed dialog only when the next one is open.
    await closed?.evaluate((element) => element.dispatchEvent(new Event('close')))
    await page.keyboard.type('renamed')
    await page.keyboard.press('ArrowDown')
    const active = await palette.getAttribute('aria-activedescendant')
    t.equal(await page.locator(`[id="${active}"]`).getAttribute('aria-selected'), 'true')
    t.match(await page.locator(`[id="${active}"]`).textContent(), /renamed/)
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'renamed' }).waitFor()
    t.equal(page.url(), `${url}/boxes/renamed`)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('create')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Create a box' }).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    // On a busy machine, the closed dialog returns the focus only after the key.
    await waitUntil('the palette opens', async () => {
      if (!(await palette.isVisible())) await page.getByRole('button', { name: 'Go to…' }).press('Enter')
      return palette.isVisible()
    })
    await page.keyboard.press('Escape')
    await palette.waitFor({ state: 'detached' })
    t.match(await page.evaluate('document.activeElement.textContent'), 'Go to…', 'the focus returns')
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
