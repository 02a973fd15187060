// The repositories of a box are cloned in the background: results, private repositories, interruptions and updates.
import t, { type Test } from 'tap'
import { updateBox } from '../../../../coordinator/boxes/store/boxes.ts'
import { subscribeToVariableChanges } from '../../../../coordinator/boxes/variable-changes.ts'
import { subscribeToDeliveries } from '../../../../coordinator/environments/delivery/delivery-changes.ts'
import { createBoxRepoService } from '../../../../coordinator/environments/delivery/repo-service.ts'
import { RepoSync, type RepoSyncOptions } from '../../../../coordinator/environments/delivery/sync-repos.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { silentLog } from '../../../support/tunnel.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createBoxWithEnvironment } from './support.ts'

const COMMIT = 'c'.repeat(40)
const TOOL = { repo: 'https://git.example.com/me/tool.git' }

async function setUp(
  t: Test,
  mount: Awaited<ReturnType<RepoSyncOptions['boxSecrets']['mountForRepo']>> = { problem: '' },
) {
  const box = await createBoxWithEnvironment(t)
  const changes: string[] = []
  subscribeToVariableChanges(box.db, () => changes.push('change'), { onGap: () => undefined })
  const options: RepoSyncOptions = {
    ...box,
    clock: systemClock,
    log: silentLog,
    retryMs: 1,
    boxSecrets: {
      async mountForRepo(trx, { id }, name) {
        changes.push(`mount ${name}`)
        if ('placeholder' in mount)
          await updateBox(trx, id, { mount_vars: JSON.stringify([{ name, value: mount.placeholder }]) })
        return mount
      },
    },
    boxVariables: {
      whenSent: async () => void changes.push('sent'),
    },
  }
  const sync = new RepoSync(options)
  t.teardown(() => sync.close())
  box.setResponse(async () => ({ status: 200, body: { commit: COMMIT, isKept: false } }))
  subscribeToDeliveries(box.db, ({ boxId }) => sync.schedule(boxId), { onGap: () => undefined })
  const service = createBoxRepoService({ ...box, clock: systemClock, finder: box.boxes })
  const list = () => service.list(box.owner, box.id)
  return {
    ...{ ...box, changes, options, list },
    schedule: () => sync.schedule(box.id),
    update: () => service.update(box.owner, box.id),
    close: () => sync.close(),
    async waitForStates(...states: string[]) {
      await waitUntil(
        `the states are ${states.join(', ')}`,
        async () => (await list()).map(({ state }) => state).join() === states.join(),
      )
      return list()
    },
  }
}

t.test('clones when the box runs, and updates on request', async (t) => {
  const { setRepos, connect, schedule, change, calls, list, update, waitForStates, listReasons } =
    await setUp(t)
  await setRepos([TOOL, { repo: 'me/other', path: '~/src/other', ref: 'main' }])
  schedule()
  connect()
  await change({ observed_state: 'bootstrapping' })
  schedule()
  t.match(await list(), [{ state: 'pending' }, { state: 'pending' }])
  await change({ observed_state: 'running' })
  schedule()
  t.match(await waitForStates('ready', 'ready'), [
    { repo: TOOL.repo, path: '~/tool', ref: null, commit: COMMIT, error: null },
    { repo: 'me/other', path: '~/src/other', ref: 'main', commit: COMMIT },
  ])
  const common = { password: null, update: false, env: { NAME: 'value' } }
  t.same(
    calls.toSorted((a, b) => (String(a.body.url) < String(b.body.url) ? -1 : 1)),
    [
      { path: 'PUT /environment-repos', body: { ...common, url: TOOL.repo, path: '~/tool', ref: null } },
      {
        path: 'PUT /environment-repos',
        body: { ...common, url: 'https://github.com/me/other', path: '~/src/other', ref: 'main' },
      },
    ],
  )
  t.same((await listReasons()).toSorted(), [
    `cloned ${TOOL.repo} in ~/tool at cccccccccc`,
    'cloned https://github.com/me/other in ~/src/other at cccccccccc',
  ])
  await setRepos([TOOL])
  t.match(await update(), [{ state: 'pending', commit: COMMIT }])
  await waitForStates('ready')
  t.match(calls.at(-1)?.body, { url: TOOL.repo, update: true })
  t.equal((await listReasons()).at(-1), `updated ${TOOL.repo} in ~/tool at cccccccccc`)
})

t.test('a failure degrades nothing, says why, and can be repeated', async (t) => {
  const { setRepos, connect, schedule, setResponse, update, waitForStates, listReasons, readBox } =
    await setUp(t)
  connect()
  await setRepos([TOOL])
  const failures: [response: { status: number; body?: unknown }, error: RegExp][] = [
    [{ status: 200, body: { error: 'fatal: not\u001b found\n' } }, /^fatal: not found/],
    [{ status: 500 }, /^the agent has responded with 500$/],
    [{ status: 200, body: { commit: 'HEAD', isKept: false } }, /^the response of the agent is not valid$/],
  ]
  for (const [response, error] of failures) {
    setResponse(async () => response)
    schedule()
    t.match(await waitForStates('failed'), [{ error, commit: null }])
    t.match(
      (await listReasons()).at(-1),
      /^could not clone https:\/\/git\.example\.com\/me\/tool\.git in ~\/tool: /,
    )
    t.equal((await readBox()).observed_state, 'running')
    setResponse(async () => ({ status: 200, body: { commit: null, isKept: true } }))
    await update()
    t.match(await waitForStates('ready'), [{ error: null, commit: null }])
    t.equal((await listReasons()).at(-1), `kept the clone of ${TOOL.repo} in ~/tool without commits`)
    await setRepos([])
    await setRepos([TOOL])
  }
})

t.test('a private repository', async (t) => {
  const mount = { placeholder: 'dcpsec_x', hosts: ['*.example.com'] }
  const { setRepos, connect, schedule, calls, changes, waitForStates } = await setUp(t, mount)
  connect()
  await setRepos([
    { ...TOOL, secret: 'GIT_TOKEN' },
    { repo: 'https://git.example.com:8443/me/port', secret: 'GIT_TOKEN' },
    { repo: 'https://other.example.net/me/host', secret: 'GIT_TOKEN' },
  ])
  schedule()
  const [tool, port, host] = await waitForStates('ready', 'failed', 'failed')
  t.match(tool, { commit: COMMIT })
  t.match(port, { error: 'the secret GIT_TOKEN is sent to port 443 only' })
  t.match(host, { error: 'the secret GIT_TOKEN is not for the host other.example.net' })
  t.same(
    calls.map(({ body }) => [body.password, body.env]),
    [['dcpsec_x', { NAME: 'value', GIT_TOKEN: 'dcpsec_x' }]],
  )
  t.equal(changes.filter((change) => change === 'change').length, 1, 'the agent gets the hosts once')
  t.equal(changes.filter((change) => change === 'sent').length, 1, 'git starts afterwards')
})

t.test('a secret that the box may not use', async (t) => {
  const { setRepos, connect, schedule, calls, waitForStates, listReasons } = await setUp(t, {
    problem: 'the box is restricted, and gets no secrets',
  })
  connect()
  await setRepos([{ ...TOOL, secret: 'GIT_TOKEN' }])
  schedule()
  await waitForStates('failed')
  t.same(calls, [])
  t.match(await listReasons(), [/: the box is restricted, and gets no secrets$/])
})

t.test('continues when the agent connects again, and with the next coordinator', async (t) => {
  const box = await setUp(t)
  const { setRepos, connect, disconnect, schedule, setResponse, calls, list, options, waitForStates, close } =
    box
  connect()
  await setRepos([TOOL])
  setResponse(() => {
    disconnect()
    return Promise.reject(new ApiError('box_unreachable'))
  })
  schedule()
  await waitUntil('the request has failed', () => calls.length === 1)
  t.match(await waitForStates('cloning'), [{ error: null }])

  // The agent continues to clone when the coordinator stops.
  const pending = Promise.withResolvers<{ status: number }>()
  setResponse(() => pending.promise)
  connect()
  schedule()
  await waitUntil('the request is repeated', () => calls.length === 2)
  const closed = close()
  pending.reject(new Error('the coordinator closes'))
  await closed
  t.match(await list(), [{ state: 'cloning' }])

  setResponse(async () => ({ status: 200, body: { commit: COMMIT, isKept: false } }))
  const next = new RepoSync(options)
  t.teardown(() => next.close())
  next.schedule(box.id)
  await waitForStates('ready')
})

t.test('an agent that is connected and does not respond', async (t) => {
  const { setRepos, connect, schedule, setResponse, calls, waitForStates } = await setUp(t)
  connect()
  await setRepos([TOOL])
  setResponse(() => Promise.reject(new ApiError('box_unreachable')))
  schedule()
  t.match(await waitForStates('failed'), [{ error: /does not respond/ }])
  t.equal(calls.length, 3)
})

t.test('an upgrade during a clone: the result belongs to a repository that is gone', async (t) => {
  const { setRepos, connect, schedule, setResponse, calls, waitForStates } = await setUp(t)
  connect()
  await setRepos([TOOL])
  setResponse(async () => {
    if (calls.length === 1) {
      await setRepos([{ ...TOOL, ref: 'v2' }])
      schedule()
      return { status: 200, body: { commit: 'a'.repeat(40), isKept: false } }
    }
    return { status: 200, body: { commit: COMMIT, isKept: false } }
  })
  schedule()
  t.match(await waitForStates('ready'), [{ ref: 'v2', commit: COMMIT }])
  t.equal(calls.length, 2)
})
