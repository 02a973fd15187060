// The link that signs in the owner. test/e2e/replicas runs it through two coordinators.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createTestClock } from '../../../support/workspace.ts'
import { startSignInCoordinator } from './support.ts'

t.test('a link signs the owner in once, within 15 minutes', async (t) => {
  const clock = createTestClock()
  const { api, key, dataDir, readAudit } = await startSignInCoordinator(t, { clock })
  const ownerSecret = readFileSync(join(dataDir, 'sign-in.key'), 'utf8')
  const signInOwner = (secret: string) => api('POST', '/sign-in/owner', { secret }, { key: null })
  const createLink = (secret = ownerSecret) => api('POST', '/sign-in/owner/link', { secret }, { key: null })
  const { status, json, headers } = await createLink()
  t.equal(status, 201)
  t.equal(headers.get('cache-control'), 'no-store')
  t.equal(Date.parse(json.expiresAt), clock.now() + 15 * 60_000)
  t.match(await signInOwner(json.secret), { status: 200, json: { user: { role: 'owner' } } })
  t.match((await readAudit('session.sign_in')).at(-1), { detail: { method: 'owner_link' } })
  const used = { status: 401, json: { error: 'unauthorized', message: /^This link has been used, or has/ } }
  t.match(await signInOwner(json.secret), used)
  t.match(await createLink(json.secret), { status: 401 }, 'a link creates no link')
  t.match(await createLink(key), { status: 401, json: { message: /^This is an API key/ } })

  const { json: expiring } = await createLink()
  clock.advance(15 * 60_000)
  t.match(await signInOwner(expiring.secret), used)
  const links = []
  for (let i = 0; i < 21; i++) links.push((await createLink()).json.secret)
  t.match(await signInOwner(links[0]), used, 'the last twenty are valid')
  t.match(await signInOwner(links[1]), { status: 200 })
})
