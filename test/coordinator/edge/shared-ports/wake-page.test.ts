// The button that wakes a box, in a browser. Over http, browsers send no headers of fetch metadata to other names than localhost.
import t from 'tap'
import { NO_BROWSER, startBrowser } from '../../../support/browser.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { actor } from '../../http/test-server.ts'
import { HOST, startShare } from './share-fixture.ts'

t.test('a member wakes a box', { skip: NO_BROWSER }, async (t) => {
  const share = await startShare(t, {
    share: { access: 'members' },
    box: { desired_state: 'suspended', observed_state: 'suspended' },
    authorize: async (_share, { url }) => ({ type: 'serve', actor, url, cookie: undefined }),
  })
  const browser = await startBrowser(t, [`--host-resolver-rules=MAP ${HOST} 127.0.0.1:${share.port}`])
  const page = await browser.newPage()
  await page.goto(`http://${HOST}/a?b`)
  await page.click('button')
  await waitUntil('the box is woken', () => share.woken.length === 1)
  await page.waitForURL(`http://${HOST}/a?b`)
})
