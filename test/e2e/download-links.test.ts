// Download links: what creates them, that each works once, for its creator and for a minute, and what browsers get.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { hashSecret } from '../../coordinator/http/hash-secret.ts'
import type { RequestOptions } from '../support/coordinator.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { createTestSession } from '../support/session.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const coordinator = await startCoordinatorWithBox(t, { env: limitsEnv(HIGH_EDGE_LIMITS) })
const { url, key, api, box, boxRequest, exec, waitForState } = coordinator
const { db } = coordinator.instance.context
const session = await createTestSession(coordinator)
const byKey: RequestOptions = {}
const content = randomBytes(5_000_000)
await boxRequest('PUT', '/upload?path=blob', content, {
  headers: { 'content-type': 'application/octet-stream' },
})
await exec(`mkdir dir && touch 'dir/<b>größe".html'`)

const create = (path: string, options: RequestOptions = session) =>
  api('POST', `/boxes/${box.id}/download-links`, { path }, options)
const createLink = async (path = 'blob', options: RequestOptions = session): Promise<string> => {
  const { status, json } = await create(path, options)
  if (status !== 201) throw new Error(`responded with ${status}: ${JSON.stringify(json)}`)
  return json.url
}
const toHeaders = ({ headers, key: ownKey }: RequestOptions): Record<string, string> => ({
  ...(ownKey !== null && { authorization: `Bearer ${ownKey ?? key}` }),
  ...(headers as Record<string, string>),
})
const open = (link: string, options: RequestOptions = session, method = 'GET', headers = {}) =>
  fetch(url + link, { method, headers: { ...toHeaders(options), ...headers } })
const readRow = (link: string) =>
  db
    .selectFrom('download_links')
    .selectAll()
    .where('hash', '=', hashSecret(link.split('/').at(-1) ?? ''))
    .executeTakeFirst()

t.test('a link downloads the file once, and HEAD does not use it', async (t) => {
  const now = Date.now()
  const { status, json } = await create('blob')
  t.match([status, json.url], [201, /^\/api\/v1\/downloads\/[\w-]{43}$/])
  t.ok(Date.parse(json.expiresAt) >= now + 60_000)
  t.ok(Date.parse(json.expiresAt) <= Date.now() + 60_000)
  t.notOk(
    JSON.stringify(await readRow(json.url)).includes(json.url.split('/').at(-1)),
    'only the hash is stored',
  )
  const head = await open(json.url, session, 'HEAD')
  t.match([head.status, head.headers.get('content-length')], [200, '5000000'])
  const response = await open(json.url)
  t.equal(response.status, 200)
  t.ok(content.equals(Buffer.from(await response.arrayBuffer())))
  for (const method of ['GET', 'HEAD']) t.equal((await open(json.url, session, method)).status, 404)
  t.match(await (await open(json.url)).json(), { error: 'not_found', message: /download link was used/ })
  const link = await createLink()
  const responses = await Promise.all(Array.from({ length: 5 }, () => open(link)))
  t.equal(responses.filter((response) => response.status === 200).length, 1, 'at the same time')
  await Promise.all(responses.map((response) => response.arrayBuffer()))
})

t.test('browsers store what a box sends, and do not show it', async (t) => {
  const check = async (response: Response, disposition: string) => {
    t.equal(response.status, 200)
    t.equal(response.headers.get('content-disposition'), disposition)
    t.equal(response.headers.get('x-content-type-options'), 'nosniff')
    t.equal(response.headers.get('content-security-policy'), 'sandbox')
    t.match(response.headers.get('content-type'), /^application\/(octet-stream|x-tar)$/)
    await response.arrayBuffer()
  }
  const name = `attachment; filename="<b>gr__e_.html"; filename*=UTF-8''%3Cb%3Egr%C3%B6%C3%9Fe%22.html`
  await check(await open(await createLink('dir/<b>größe".html')), name)
  const directory = `attachment; filename="dir.tar"; filename*=UTF-8''dir.tar`
  await check(await open(await createLink('dir')), directory)
  await check(await open(await createLink('dir'), session, 'HEAD'), directory)
  const edge = `${url}/v1/box/${box.hostname}/download?path=dir`
  await check(await fetch(edge, { headers: toHeaders(byKey) }), directory)
  const range = await open(await createLink(), session, 'GET', { range: 'bytes=0-9' })
  t.match([range.status, range.headers.get('content-security-policy')], [206, 'sandbox'])
  t.ok(content.subarray(0, 10).equals(Buffer.from(await range.arrayBuffer())))
})

t.test('a link is for the session or key that has created it', async (t) => {
  const other = await createTestSession(coordinator)
  for (const [creator, stranger] of [
    [session, other],
    [session, byKey],
    [byKey, session],
  ] as const) {
    const link = await createLink('blob', creator)
    t.equal((await open(link, stranger)).status, 404)
    t.equal((await open(link, { key: null })).status, 401)
    const response = await open(link, creator)
    t.equal(response.status, 200, 'the refused requests have not used it')
    await response.arrayBuffer()
  }
  const contractor = await createTestSession(coordinator, 'contractor')
  t.equal((await create('blob', contractor)).status, 404, 'the box of another user')
  for (const path of ['', 'a\nb', 'a\0b', 'x'.repeat(4097)]) t.equal((await create(path)).status, 400)
})

t.test('a link ends after a minute, and with its session', async (t) => {
  const link = await createLink()
  const row = await readRow(link)
  await db
    .updateTable('download_links')
    .set({ expires_at: Date.now() - 1 })
    .where('hash', '=', row?.hash ?? '')
    .execute()
  t.equal((await open(link)).status, 404, 'expired')
  const revoked = await createTestSession(coordinator)
  const ofRevoked = await createLink('blob', revoked)
  t.equal((await api('DELETE', `/sessions/${revoked.sessionId}`, undefined, revoked)).status, 204)
  t.equal((await open(ofRevoked, revoked)).status, 401)
})

t.test('the download has the errors of the box', async (t) => {
  t.match(await (await open(await createLink('none'))).json(), { error: 'not_found', message: /none/ })
  await exec('touch secret && chmod 000 secret')
  t.match(await (await open(await createLink('secret'))).json(), { error: 'permission_denied' })
  const links = [await createLink(), await createLink()] as const
  await api('POST', `/boxes/${box.id}/suspend`)
  await waitForState(box.id, 'suspended')
  t.match(await (await open(links[0])).json(), { error: 'box_not_running', state: 'suspended' })
  await api('DELETE', `/boxes/${box.id}`)
  await waitForState(box.id, 'terminated')
  t.equal((await open(links[1])).status, 404)
  t.equal(await readRow(links[1]), undefined, 'deleted with the box')
  t.equal((await create('blob')).status, 404)
})
