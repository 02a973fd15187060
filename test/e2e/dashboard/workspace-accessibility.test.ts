// axe-core on each page of the workspace, light and dark, narrow and wide.
import t from 'tap'
import { WORKSPACE_PAGES } from '../../../dashboard/data/routes.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, testAccessibility } from '../../support/dashboard.ts'

t.test('the pages of the workspace', { skip: NO_BROWSER }, async (t) => {
  const { url, api, box, page, problems } = await openDashboard(t, () => '/workspace/settings', {
    machines: 'fake',
  })
  await api('POST', '/snapshots', { boxId: box.id, name: 'before' })
  for (const [name, label] of Object.entries(WORKSPACE_PAGES))
    await t.test(label, async (t) => {
      await page.goto(`${url}/workspace/${name}`)
      await testAccessibility(t, page, async () => {
        await page.getByRole('heading', { level: 1, name: label }).waitFor()
        await page.waitForLoadState('networkidle')
      })
    })
  t.same(problems, [], 'no violation of the policy and no error')
})
