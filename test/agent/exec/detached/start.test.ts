// Starting detached processes: the start response, the environment of the command, and the recorded exit status.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../../../shared/ids.ts'
import { LIMITS } from '../../../../shared/limits.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { waitForPid } from '../support.ts'
import { createAgent, isNativeRunner } from './support.ts'

t.test('responds when the command has started, and reports output and exit on request', async (t) => {
  const { start, getStatus, waitForExit, home } = await createAgent(t)
  const started = await start(
    'echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 7',
  )
  t.match(started, { ok: true, type: 'exec.started', cwd: '~', logPath: /\/stdout$/ })
  t.notOk('commandId' in started, 'the command is not recorded')
  const { processId, pid } = started
  await waitUntil('the output is in the log', () => readFileSync(started.logPath, 'utf8') === 'out\n')
  const runningStatus = {
    processId,
    pid,
    running: true,
    lost: false,
    exitCode: null,
    signal: null,
    finishedAt: null,
  }
  t.match(await getStatus(processId), { ...runningStatus, stdout: 'out\n', cwd: '~' })
  writeFileSync(join(home, 'go'), '')
  await waitForExit(processId)
  const exitedStatus = await getStatus(processId)
  t.match(exitedStatus, {
    running: false,
    lost: false,
    exitCode: 7,
    signal: null,
    stdout: 'out\nend\n',
    stderr: 'err\n',
  })
  t.ok(exitedStatus.finishedAt !== null && exitedStatus.finishedAt >= exitedStatus.startedAt)
})

t.test("the pid is that of the command's shell, which leads its own session", async (t) => {
  const { start, home } = await createAgent(t)
  const { pid } = await start('echo $$ >pid; exec sleep 600')
  t.equal(await waitForPid(home, 'pid'), pid)
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  t.same([fields[2], fields[3]], [String(pid), String(pid)], 'the process group and the session')
})

t.test('reports the exact exit code or signal', async (t) => {
  const { start, waitForExit } = await createAgent(t)
  const run = async (command: string) => waitForExit((await start(`ulimit -c 0; ${command}`)).processId)
  for (const exitCode of [0, 1, 124, 137, 143, 255])
    t.match(await run(`exit ${exitCode}`), { status: 'exited', exitCode, signal: null })
  if (!isNativeRunner) return
  for (const signal of ['TERM', 'KILL', 'SEGV', 'HUP', 'PIPE'])
    t.match(await run(`kill -${signal} $$`), { status: 'killed', exitCode: null, signal })
  t.match(await run('kill -37 $$'), { signal: '37' }, 'a real-time signal')
})

t.test('returns the command id of a recorded command', async (t) => {
  const { start, getProcess } = await createAgent(t)
  const processId = newId('process')
  const record = { commandId: processId, claimsToken: 'signed', keepOutput: false }
  t.match(await start('true', { processId, record }), { processId, commandId: processId })
  t.match(getProcess(processId), { record })
})

t.test('lists processes newest first, with truncated commands', async (t) => {
  const { start, list, getStatus } = await createAgent(t)
  const ids = []
  for (let number = 0; number < 5; number++) ids.unshift((await start(`echo ${number}`)).processId)
  t.same(
    (await list()).map(({ processId }) => processId),
    ids,
  )
  t.match((await list())[0], { command: 'echo 4' })
  const longCommand = `: ${'x'.repeat(60_000)}`
  const { processId } = await start(longCommand)
  t.equal((await list())[0]?.command, longCommand.slice(0, 2048), 'the list has the first 2048 characters')
  t.equal((await getStatus(processId)).command, longCommand, 'the status has the complete command')
})

t.test('behaves like sh -c, with the requested environment and cwd', async (t) => {
  const { start, getStatus, waitForExit, home } = await createAgent(t)
  const run = async (command: string, fields: object = {}) => {
    const { processId, cwd } = await start(command, fields)
    await waitForExit(processId)
    return { ...(await getStatus(processId, LIMITS.detachedTailBytes.max)), cwd }
  }
  const env = { A: 'mine', dir: 'f', COMMAND: 'c', start: 's' }
  const boxEnv = { A: 'box', B: 'box' }
  t.match(await run('echo "$A $B $dir $COMMAND $start|$0|$#|$-"', { env, boxEnv }), {
    stdout: /^mine box f c s\|sh\|0\|/,
  })
  t.match(await run('pwd'), { stdout: `${home}\n`, cwd: '~' })
  t.match(await run('pwd', { cwd: '/' }), { stdout: '/\n', cwd: '/' })
  t.match(await run('wc -c; readlink /proc/self/fd/0'), { stdout: '0\n/dev/null\n' })
  t.match(await run('-e'), { stderr: /-e: / })
  t.match(await run('grep -E "Sig(Blk|Ign)" /proc/self/status'), {
    stdout: 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n',
  })
  const { processId, stdout, ...status } = await run('env')
  t.match(status, { lost: false, exitCode: 0, stderr: '', stdoutTruncated: false })
  t.match(stdout, `BOXWOOD_PROCESS_ID=${processId}\n`)
  t.notMatch(stdout, /BOXWOOD_RUNNER_FOR|boxwood_/)
})

t.test('the command inherits no descriptor of the agent', async (t) => {
  const { start, getStatus, waitForExit } = await createAgent(t)
  const { processId } = await start('ls -l /proc/$$/fd')
  await waitForExit(processId)
  const { stdout } = await getStatus(processId)
  const descriptors = [...stdout.matchAll(/ (\d+) -> /g)].map(([, number]) => Number(number))
  // A shell opens its script at a descriptor of 10 or above.
  t.same(
    descriptors.filter((fd) => fd < 10),
    [0, 1, 2],
  )
  t.notMatch(stdout, /socket:|inotify|eventpoll/)
})

t.test(
  'a command that opens /dev/stdout or /dev/stderr does not truncate its logs',
  { skip: !isNativeRunner },
  async (t) => {
    const { start, getStatus, waitForExit } = await createAgent(t)
    const { processId } = await start(
      'echo a >&2; echo b >/dev/stderr; echo c | tee /dev/stderr; echo d >/dev/stdout',
    )
    await waitForExit(processId)
    t.match(await getStatus(processId), { stdout: 'c\nd\n', stderr: 'a\nb\nc\n' })
  },
)

t.test('rejects a start that cannot succeed, and leaves no files behind', async (t) => {
  const { expectStartError, list, dir } = await createAgent(t)
  t.match(await expectStartError('true', { cwd: 'nonexistent' }), { status: 404, code: 'not_found' })
  t.match(await expectStartError('true', { cwd: '/dev/null' }), { status: 400, code: 'invalid_path' })
  t.match(await expectStartError('true', { boxEnv: { A: 'x'.repeat(200_000) } }), {
    code: 'exec_failed',
    message: /argument list too long/i,
  })
  t.match(await expectStartError('true', { processId: 'p_1' }), { status: 400, code: 'invalid_request' })
  t.match(await expectStartError('true', { processId: undefined }), { status: 400, code: 'invalid_request' })
  t.match(await expectStartError('true', { timeoutSeconds: 0 }), { status: 400, code: 'invalid_timeout' })
  t.match(await expectStartError('true', { env: { 'A=B': 'c' } }), { status: 400, code: 'invalid_request' })
  t.same(await list(), [])
  t.same(
    readdirSync(dir).filter((name) => name.startsWith('p_')),
    [],
  )
})

t.test('repeated start requests with one id start the command once', async (t) => {
  const { start, expectStartError, list, home } = await createAgent(t)
  const processId = newId('process')
  const command = 'echo $$ >>starts; exec sleep 600'
  const responses = await Promise.all(Array.from({ length: 50 }, () => start(command, { processId })))
  responses.push(await start(command, { processId }))
  t.equal(new Set(responses.map(({ pid }) => pid)).size, 1)
  t.equal(await waitForPid(home, 'starts'), responses[0]?.pid)
  t.equal((await list()).length, 1)
  t.match(await expectStartError('sleep 601', { processId }), { status: 422, code: 'idempotency_key_reused' })
  t.match(await expectStartError(command, { processId, cwd: '/' }), {
    status: 422,
    code: 'idempotency_key_reused',
  })
})

t.test('a running process counts as activity', async (t) => {
  const { start, kill, activity } = await createAgent(t)
  const startCalls = t.capture(activity, 'startOperation', activity.startOperation)
  const { processId } = await start('exec sleep 600')
  t.equal(startCalls().length, 1)
  await kill(processId)
})

t.test('responds not_found for an unknown id', async (t) => {
  const { request } = await createAgent(t)
  for (const method of ['GET', 'DELETE'] as const) {
    const response = await request({ method, path: `/exec/${newId('process')}` })
    t.match(JSON.parse(response.text), { ok: false, error: { code: 'not_found' } })
  }
})
