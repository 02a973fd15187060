// Downloads and uploads 1 GiB in Chromium through a link for members, and less through links of the other audiences: the bytes
// take the same path.
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../support/browser.ts'
import { AUDIENCES, startSharingBox } from './shared-app.ts'
import { testTransfers } from './use-app.ts'

t.test('1 GiB', { skip: NO_BROWSER }, async (t) => {
  const coordinator = await startSharingBox(t)
  const port = await coordinator.startApp()
  const browser = await startBrowser(t)
  for (const access of AUDIENCES)
    await t.test(`for ${access}`, async (t) => {
      const page = await coordinator.openPage(browser, await coordinator.share({ port, access }))
      await testTransfers(t, page, access === 'members' ? 1024 : 128)
      await page.context().close()
      t.equal(await coordinator.run('cat app/errors.log'), '', 'the box has seen no aborted request')
    })
})
