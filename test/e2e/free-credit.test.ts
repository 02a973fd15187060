// Free credit where anyone may sign up: a person gets it once, by sign-in or by an agent account.
import t from 'tap'
import { SESSION_COOKIE } from '../../shared/session-cookie.ts'
import { startSignInCoordinator } from '../coordinator/identity/sessions/support.ts'
import type { RequestOptions } from '../support/coordinator.ts'

const NO_KEY = { key: null }
const CREDIT = 5_000_000

t.test('workspaces, tags and agent accounts of one person', async (t) => {
  const { api, signIn, readPrintedCode } = await startSignInCoordinator(t, {
    env: { BOXWOOD_SIGNUP: 'open', BOXWOOD_BILLING: 'manual' },
  })
  const balance = async (options: RequestOptions) =>
    (await api('GET', '/me', undefined, options)).json.billing.balanceMicros
  const toSession = ({ headers }: { headers: Headers }): RequestOptions => {
    const [, token = ''] = new RegExp(`${SESSION_COOKIE}=([^;]+)`).exec(headers.get('set-cookie') ?? '') ?? []
    return { key: null, headers: { cookie: `${SESSION_COOKIE}=${token}` } }
  }
  const session = toSession(await signIn('eve@example.com'))
  t.equal(await balance(session), CREDIT)

  const { json } = await api('POST', '/workspaces', { name: 'second' }, session)
  const moved = await api('POST', '/session/workspace', { workspaceId: json.workspace.id }, session)
  const second = toSession(moved)
  t.equal(await balance(second), 0, 'another workspace')
  t.match((await api('POST', '/boxes', {}, second)).json, { error: 'insufficient_balance' })
  t.equal(await balance(toSession(await signIn('eve+1@example.com'))), 0, 'an address with a tag')

  const createAccount = async (email: string) => {
    const { secret, codeId } = (await api('POST', '/agent-accounts', { email }, NO_KEY)).json
    const before = await balance({ key: secret })
    const code = await readPrintedCode()
    const verified = await api('POST', '/agent-accounts/verify', { id: codeId, code }, NO_KEY)
    t.equal(verified.status, 200)
    return [before, await balance({ key: secret })]
  }
  t.same(await createAccount('EVE+bot@example.com'), [0, 0], 'an agent account of the person')
  t.same(await createAccount('bot@example.com'), [0, CREDIT], 'another address, when it is confirmed')
  t.same(await createAccount('bot@example.com'), [0, 0])
})
