// Spec §4.4: the command history over HTTP, with real commands on a real box.
import t from 'tap'
import { runBox } from '../cli/run-box.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

t.test('records commands with their actor, result and output', async (t) => {
  const { api, boxRequest, box, key, url } = sharedCoordinator
  const me = (await api('GET', '/me')).json
  const history = async (query = '') => (await api('GET', `/boxes/${box.id}/commands${query}`)).json
  const getCommand = async (id: string) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command
  const output = async (id: string, query = '') =>
    (await api('GET', `/boxes/${box.id}/commands/${id}/output${query}`)).json
  const exec = async (body: object, headers: Record<string, string> = {}) =>
    (await boxRequest('POST', '/exec', body, { headers })).json

  t.same(await history(), { commands: [], nextBefore: null })

  await t.test('a synchronous command is recorded by the time its response arrives', async (t) => {
    const result = await exec({ command: 'echo out; echo err >&2; exit 3', cwd: '/tmp' })
    t.match(result, { exitCode: 3, commandId: /^p_[0-9a-f]{24}$/ })
    const record = await getCommand(result.commandId)
    t.match(record, {
      id: result.commandId,
      boxId: box.id,
      mode: 'sync',
      source: 'api',
      command: 'echo out; echo err >&2; exit 3',
      commandTruncated: false,
      cwd: '/tmp',
      status: 'exited',
      exitCode: 3,
      signal: null,
      pid: Number,
      startedAt: result.startedAt,
      actor: { kind: 'user', userId: String, tokenId: me.key.id },
      stdoutBytes: 4,
      stderrBytes: 4,
      stdoutTruncated: false,
      stderrTruncated: false,
      outputKept: true,
    })
    t.equal(typeof record.finishedAt, 'string')
    t.same((await history()).commands, [record])
    t.same(await output(result.commandId), {
      stream: 'stdout',
      encoding: 'utf8',
      offset: 0,
      nextOffset: 4,
      size: 4,
      skipped: 0,
      data: 'out\n',
      status: 'exited',
      done: true,
    })
    t.match(await output(result.commandId, '?stream=stderr&encoding=base64'), {
      data: Buffer.from('err\n').toString('base64'),
    })
  })

  await t.test('records every kind of exit', async (t) => {
    const runAndGet = async (body: object) => getCommand((await exec(body)).commandId)
    t.match(await runAndGet({ command: 'kill -9 $$' }), { status: 'killed', exitCode: null, signal: 'KILL' })
    t.match(await runAndGet({ command: 'sleep 60', timeoutSeconds: 1 }), { status: 'timed_out', cwd: '~' })
    t.match(await runAndGet({ command: 'exit 124' }), { status: 'exited', exitCode: 124 })
    const missing = await boxRequest('POST', '/exec', { command: 'true', cwd: '/no/such' })
    t.equal(missing.status, 404)
    t.equal((await history()).commands.length, 4, 'a rejected command is not recorded')
  })

  await t.test('commands run by the box CLI have the source cli', async (t) => {
    const args = ['exec', box.hostname, '--', 'echo', 'from cli']
    t.match(await runBox(url, args, { env: { BOXWOOD_API_KEY: key } }), { code: 0, stdout: 'from cli\n' })
    const [latest] = (await history('?limit=1')).commands
    t.match(latest, { source: 'cli', command: "echo 'from cli'", status: 'exited' })
  })

  await t.test('truncates a long command, and stores the last MiB of long output', async (t) => {
    const long = `echo ${'x'.repeat(9000)} | wc -c`
    const { commandId, stdout } = await exec({ command: long })
    t.equal(stdout, '9001\n')
    t.match(await getCommand(commandId), { command: long.slice(0, 8192), commandTruncated: true })

    const big = await exec({ command: 'seq 1 400000; seq 1 1000 >&2' })
    const all = Array.from({ length: 400_000 }, (_, i) => `${i + 1}\n`).join('')
    const MiB = 1024 * 1024
    t.match(await getCommand(big.commandId), {
      stdoutBytes: all.length,
      stdoutTruncated: true,
      stderrBytes: 3893,
      stderrTruncated: false,
    })
    const page = await output(big.commandId)
    t.match(page, {
      offset: all.length - MiB,
      skipped: all.length - MiB,
      nextOffset: all.length,
      size: all.length,
      done: true,
    })
    t.ok(page.data === all.slice(-MiB))
    t.ok(page.data === big.stdout)
  })

  await t.test(
    'a detached command is recorded immediately, with output while it runs, and with its exit',
    async (t) => {
      const started = await exec({
        command: 'echo first; until test -e go; do sleep 0.05; done; echo last',
        detached: true,
      })
      t.equal(started.commandId, started.processId)
      const id = started.processId
      t.match(await getCommand(id), {
        mode: 'detached',
        status: 'running',
        exitCode: null,
        finishedAt: null,
        pid: started.pid,
      })
      await waitUntil('the output is recorded', async () => (await output(id)).data === 'first\n')
      t.match(await output(id), { status: 'running', done: false, nextOffset: 6 })
      await exec({ command: 'touch go' })
      await waitUntil('the command exited', async () => (await getCommand(id)).status === 'exited')
      t.match(await getCommand(id), { exitCode: 0, stdoutBytes: 11 })
      t.match(await output(id, '?offset=6'), { data: 'last\n', done: true })
    },
  )
})
