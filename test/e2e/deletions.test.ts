// Spec §4.1.5: every DELETE of the API can be repeated, and §4.1.3: an unknown or foreign id is not found.
import t from 'tap'
import { newId } from '../../shared/ids.ts'
import { type ApiResponse, startTestCoordinator } from '../support/coordinator.ts'
import { createCredentials } from './access/credentials.ts'
import { createRequest, type Target } from './access/requests.ts'
import { type Row, readRows } from './access/tables.ts'
import { createTargets } from './access/targets.ts'

const rows = readRows().filter(({ method, host }) => method === 'DELETE' && host === 'control')

/** Routes whose repeated request has another answer, with the reason. */
const EXCEPTIONS: Record<string, { status: number; reason: string }> = {
  'DELETE /session': { status: 401, reason: 'the credential of the request has ended' },
  'DELETE /aws-connect/{id}': { status: 404, reason: 'spec §4.6: 404 once spent, expired or cancelled' },
}
/** Answers that count what was deleted. */
const COUNTING = ['DELETE /boxes/{id}/commands']
/** Only the operator may use them, and only for another workspace; or there is nothing to delete in this setup. */
const NOT_HERE = ['DELETE /operator/workspaces/{id}/hold', 'DELETE /billing/card', 'DELETE /images']

/** The ids of a target that does not exist. */
const createUnknown = (target: Target): Target => ({
  ...target,
  box: crypto.randomUUID(),
  snapshot: newId('snapshot'),
  command: newId('process'),
  environment: newId('environment'),
  enrollment: newId('enrollment'),
  share: newId('portShare'),
  secret: newId('secret'),
  grant: newId('secretGrant'),
  mount: newId('secretMount'),
  awsRole: newId('awsRole'),
  awsConnect: newId('awsConnect'),
  session: newId('session'),
  key: newId('apiKey'),
  member: newId('user'),
})

const hasId = ({ path }: Row) => path.includes('{id}')

t.test('each DELETE can be repeated, and discloses nothing of other workspaces', async (t) => {
  const coordinator = await startTestCoordinator(t, {
    env: {
      BOXWOOD_SNAPSHOT_LIMIT: '1000',
      BOXWOOD_OIDC_ISSUER: 'https://oidc.example.com',
      AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:1',
    },
  })
  const credentials = createCredentials(coordinator)
  const targets = createTargets(coordinator, credentials)
  const addOwner = async (workspaceName: string) => {
    const user = await credentials.addUser(await credentials.addWorkspace(workspaceName), 'owner')
    return { user, key: (await credentials.addKey(user)).key, workspaceName }
  }
  const [owner, stranger] = [await addOwner('tested'), await addOwner('foreign')]
  const target = await targets.add(owner)

  for (const row of rows) {
    if (NOT_HERE.includes(row.route)) continue
    await t.test(row.route, async (t) => {
      const existing = await targets.renew(row.route, owner, target)
      const isBySession = row.cells['owner key'] === '401'
      const send = async (of: typeof owner, target: Target, cookie?: string): Promise<ApiResponse> => {
        const by = cookie ?? (isBySession ? (await credentials.addSession(of.user)).cookie : undefined)
        const options = by === undefined ? { key: of.key } : { key: null, headers: { cookie: by } }
        return coordinator.api(
          'DELETE',
          createRequest(row, target).path.replace(/^\/api\/v1/, ''),
          undefined,
          options,
        )
      }
      if (hasId(row)) {
        const unknown = createUnknown(existing)
        const answers = [
          await send(stranger, existing),
          await send(stranger, unknown),
          await send(owner, unknown),
        ].map(({ status, json, text }) => ({
          status,
          code: json?.error,
          // An answer may repeat the ids of the request.
          text: Object.entries({ ...existing, ...unknown }).reduce(
            (text, [name]) =>
              text
                .replaceAll(existing[name as keyof Target], name)
                .replaceAll(unknown[name as keyof Target], name),
            String(text),
          ),
        }))
        t.match(answers[0], { status: 404, code: 'not_found' }, 'a foreign id')
        t.same(answers[0], answers[1], 'a foreign id and an unknown id')
        t.same(answers[1], answers[2], 'an unknown id of another caller')
      }
      const { cookie } = await credentials.addSession(owner.user)
      const request = () => send(owner, existing, isBySession ? cookie : undefined)
      const exception = EXCEPTIONS[row.route]
      const [first, ...others] =
        exception === undefined
          ? [...(await Promise.all([request(), request()])), await request()]
          : [await request()]
      t.ok(first && first.status >= 200 && first.status < 300, `${first?.status} ${first?.text}`)
      if (exception !== undefined) {
        t.equal((await request()).status, exception.status, exception.reason)
        return
      }
      for (const repeated of others) {
        t.equal(repeated.status, first?.status, repeated.text)
        t.same(Object.keys(repeated.json ?? {}), Object.keys(first?.json ?? {}))
      }
      if (COUNTING.includes(row.route)) t.same(others.at(-1)?.json, { deleted: 0 })
    })
  }
})
