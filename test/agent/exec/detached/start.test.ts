// A detached command runs by itself: what is answered at its start, what is told of it, how it ended.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../../../shared/ids.ts'
import { pidIn, waitUntil } from '../exec-app.ts'
import { agent, isNative } from './support.ts'

t.test('the start is answered at once, and the rest when one asks', async (t) => {
  const { start, status, ended, home } = await agent(t)
  const started = await start(
    'echo out; echo err >&2; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 7',
  )
  t.match(started, { ok: true, type: 'exec.started', cwd: '~', logPath: /\/stdout$/ })
  t.notOk('commandId' in started, 'it is not recorded')
  const { processId, pid } = started
  await waitUntil('it wrote', () => readFileSync(started.logPath, 'utf8') === 'out\n')
  const running = {
    processId,
    pid,
    running: true,
    lost: false,
    exitCode: null,
    signal: null,
    finishedAt: null,
  }
  t.match(await status(processId), { ...running, stdout: 'out\n', cwd: '~' })
  writeFileSync(join(home, 'go'), '')
  await ended(processId)
  const after = await status(processId)
  t.match(after, {
    running: false,
    lost: false,
    exitCode: 7,
    signal: null,
    stdout: 'out\nend\n',
    stderr: 'err\n',
  })
  t.ok(after.finishedAt !== null && after.finishedAt >= after.startedAt)
})

t.test('the pid is that of the command’s own shell, which leads a session of its own', async (t) => {
  const { start, home } = await agent(t)
  const { pid } = await start('echo $$ >pid; exec sleep 600')
  t.equal(await pidIn(home, 'pid'), pid)
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  t.same([fields[2], fields[3]], [String(pid), String(pid)], 'group and session')
})

t.test('how it ended is told exactly', async (t) => {
  const { start, ended } = await agent(t)
  const end = async (command: string) => ended((await start(`ulimit -c 0; ${command}`)).processId)
  for (const exitCode of [0, 1, 124, 137, 143, 255])
    t.match(await end(`exit ${exitCode}`), { status: 'exited', exitCode, signal: null })
  if (!isNative) return
  for (const signal of ['TERM', 'KILL', 'SEGV', 'HUP', 'PIPE'])
    t.match(await end(`kill -${signal} $$`), { status: 'killed', exitCode: null, signal })
  t.match(await end('kill -37 $$'), { signal: '37' }, 'a real-time signal')
})

t.test('a record is told by its id', async (t) => {
  const { start, get } = await agent(t)
  const processId = newId('process')
  const record = { commandId: processId, claimsToken: 'signed', keepOutput: false }
  t.match(await start('true', { processId, record }), { processId, commandId: processId })
  t.match(get(processId), { record })
})

t.test('newest first', async (t) => {
  const { start, list, status } = await agent(t)
  const ids = []
  for (let number = 0; number < 5; number++) ids.unshift((await start(`echo ${number}`)).processId)
  t.same(
    (await list()).map(({ processId }) => processId),
    ids,
  )
  t.match((await list())[0], { command: 'echo 4' })
  const long = `: ${'x'.repeat(60_000)}`
  const { processId } = await start(long)
  t.equal((await list())[0]?.command, long.slice(0, 2048), 'the list shows how a long one begins')
  t.equal((await status(processId)).command, long, 'and one process all of it')
})

t.test('it is what sh -c does, with the environment and the dir that were asked for', async (t) => {
  const { start, status, ended, home } = await agent(t)
  const run = async (command: string, more: object = {}) => {
    const { processId, cwd } = await start(command, more)
    await ended(processId)
    return { ...(await status(processId)), cwd }
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
  const { processId, stdout } = await run('env')
  t.match(stdout, `BOXWOOD_PROCESS_ID=${processId}\n`)
  t.notMatch(stdout, /BOXWOOD_RUNNER_FOR|boxwood_/)
})

t.test('nothing that the agent has open is open in the command', async (t) => {
  const { start, status, ended } = await agent(t)
  const { processId } = await start('ls -l /proc/$$/fd')
  await ended(processId)
  const { stdout } = await status(processId)
  const names = [...stdout.matchAll(/ (\d+) -> /g)].map(([, name]) => Number(name))
  // A shell that reads a script keeps one of its own, from 10 on.
  t.same(
    names.filter((name) => name < 10),
    [0, 1, 2],
  )
  t.notMatch(stdout, /socket:|inotify|eventpoll/)
})

t.test('/dev/stdout and /dev/stderr can be opened, and empty no log', { skip: !isNative }, async (t) => {
  const { start, status, ended } = await agent(t)
  const { processId } = await start(
    'echo a >&2; echo b >/dev/stderr; echo c | tee /dev/stderr; echo d >/dev/stdout',
  )
  await ended(processId)
  t.match(await status(processId), { stdout: 'c\nd\n', stderr: 'a\nb\nc\n' })
})

t.test('what cannot be started says why, and leaves nothing', async (t) => {
  const { refused, list, dir } = await agent(t)
  t.match(await refused('true', { cwd: 'nowhere' }), { status: 404, code: 'not_found' })
  t.match(await refused('true', { cwd: '/dev/null' }), { status: 400, code: 'invalid_path' })
  t.match(await refused('true', { boxEnv: { A: 'x'.repeat(200_000) } }), {
    code: 'exec_failed',
    message: /argument list too long/i,
  })
  t.match(await refused('true', { processId: 'p_1' }), { status: 400, code: 'invalid_request' })
  t.match(await refused('true', { processId: undefined }), { status: 400, code: 'invalid_request' })
  t.match(await refused('true', { timeoutSeconds: 0 }), { status: 400, code: 'invalid_timeout' })
  t.match(await refused('true', { env: { 'A=B': 'c' } }), { status: 400, code: 'invalid_request' })
  t.same(await list(), [])
  t.same(
    readdirSync(dir).filter((name) => name.startsWith('p_')),
    [],
  )
})

t.test('an id is started once, however often it is asked for', async (t) => {
  const { start, refused, list, home } = await agent(t)
  const processId = newId('process')
  const command = 'echo $$ >>starts; exec sleep 600'
  const answers = await Promise.all(Array.from({ length: 50 }, () => start(command, { processId })))
  answers.push(await start(command, { processId }))
  t.equal(new Set(answers.map(({ pid }) => pid)).size, 1)
  t.equal(await pidIn(home, 'starts'), answers[0]?.pid)
  t.equal((await list()).length, 1)
  t.match(await refused('sleep 601', { processId }), { status: 400, code: 'invalid_request' })
  t.match(await refused(command, { processId, cwd: '/' }), { status: 400, code: 'invalid_request' })
})

t.test('the box is busy while it runs', async (t) => {
  const { start, kill, activity } = await agent(t)
  const ends = t.capture(activity, 'startOperation', activity.startOperation)
  const { processId } = await start('exec sleep 600')
  t.equal(ends().length, 1)
  await kill(processId)
})

t.test('an id that is not known', async (t) => {
  const { app } = await agent(t)
  for (const method of ['GET', 'DELETE'] as const) {
    const answer = await app.inject({ method, url: `/exec/${newId('process')}` })
    t.match(answer.json(), { ok: false, error: { code: 'not_found' } })
  }
})
