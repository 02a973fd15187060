// Synchronous commands: their environment, and the result in the response.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadNativeSpawn } from '../../../agent/exec/native-spawn.ts'
import { createExecApp } from './support.ts'

const usesChildProcess = process.env.BOXWOOD_SPAWNER === 'node' || loadNativeSpawn() === null

t.test('returns both streams, the exit code and the times', async (t) => {
  const { exec } = createExecApp(t)
  const result = await exec('echo out; echo err >&2; exit 7')
  t.match(result, { stdout: 'out\n', stderr: 'err\n', exitCode: 7, signal: null, timedOut: false, cwd: '~' })
  t.match(result, { stdoutTruncated: false, stderrTruncated: false })
  t.ok(result.startedAt <= result.finishedAt)
})

t.test('returns a signal by name, without an exit code', async (t) => {
  const { exec } = createExecApp(t)
  t.match(await exec('kill -KILL $$'), { exitCode: null, signal: 'KILL', timedOut: false })
  t.match(await exec('kill -SEGV $$'), { exitCode: null, signal: 'SEGV', timedOut: false })
})

t.test('timedOut is false when a command itself exits with 124, 137 or 143, or by SIGTERM', async (t) => {
  const { exec } = createExecApp(t)
  for (const exitCode of [124, 137, 143]) {
    t.match(await exec(`exit ${exitCode}`), { exitCode, signal: null, timedOut: false })
  }
  t.match(await exec('kill -TERM $$'), { exitCode: null, signal: 'TERM', timedOut: false })
})

t.test('behaves exactly like sh -c', async (t) => {
  const { exec, home } = createExecApp(t)
  const commands = [
    'echo "$0|$-|$#|$?"',
    'no-such-program-here',
    'echo "unfinished',
    'cd /nonexistent',
    'exec no-such-program-here',
    'set -u; echo $UNSET_ANYWHERE',
    'echo $IFS | od -c; echo "$PPID" | tr 0-9 n | tr -s n',
    'cat; echo "after cat: $?"',
    `printf '%s\n' "a'b" 'c"d' \\$e "\\\`f"`,
    'printf no-newline',
    'echo a # a comment',
    'trap "echo bye" EXIT; exit 3',
    'cat <<END\n$((6*7))\nEND',
    'sleep 0 & wait $!; echo $?',
    'false | true; echo $?',
    'umask',
  ]
  for (const command of commands) {
    const { exitCode, stdout, stderr } = await exec(command)
    const plain = execFileSync(
      'sh',
      [
        '-c',
        'sh -c "$1" </dev/null >out 2>err; printf $? >code; cat out; echo =; cat err; echo =; cat code',
        '-',
        command,
      ],
      { cwd: home, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: home } },
    )
    t.equal(`${stdout}=\n${stderr}=\n${exitCode}`, plain, command)
  }
})

t.test('a command that starts with a dash is not an option of sh', async (t) => {
  const { exec } = createExecApp(t)
  const result = await exec('-e')
  // 127: not found. 126: PATH contains a directory that cannot be read.
  t.match(result.stderr, /-e: /)
  t.ok(result.exitCode === 127 || result.exitCode === 126)
})

t.test(
  '/dev/stdout and /dev/stderr can be opened',
  { skip: usesChildProcess && 'the outputs of child_process are sockets' },
  async (t) => {
    const { exec } = createExecApp(t)
    t.match(await exec('echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/stderr'), {
      exitCode: 0,
      stdout: 'a\nc\n',
      stderr: 'b\nc\n',
    })
  },
)

t.test('a command has an empty stdin, leads its own session and has no terminal', async (t) => {
  const { exec } = createExecApp(t)
  t.equal((await exec('wc -c')).stdout.trim(), '0')
  t.equal((await exec('readlink /proc/self/fd/0')).stdout, '/dev/null\n')
  const [pid, pgrp, session, tty] = (await exec(`echo $$ $(cut -d ' ' -f 5-7 /proc/$$/stat)`)).stdout
    .trim()
    .split(' ')
  t.equal(pgrp, pid)
  t.equal(session, pid)
  t.equal(tty, '0')
})

/** Variables that shells export themselves, and that tap adds to every child of a test. */
const IGNORED_VARIABLES = new Set(['', 'PWD', 'OLDPWD', 'SHLVL', '_', 'NODE_OPTIONS'])

t.test(
  "the box's variables override a small base environment, and the request's override both",
  async (t) => {
    const { exec, home } = createExecApp(t, { ...process.env, TMPDIR: undefined })
    const names = (stdout: string) =>
      stdout
        .split('\0')
        .map((line) => line.split('=', 1).join())
        .filter((name) => !IGNORED_VARIABLES.has(name) && !name.startsWith('_TAPJS'))
        .sort()
    t.same(names((await exec('env -0')).stdout), [
      'BOXWOOD_PROCESS_ID',
      'HOME',
      'LANG',
      'LOGNAME',
      'PATH',
      'SHELL',
      'USER',
    ])
    t.equal((await exec('echo "$HOME|$USER|$(id -un)"')).stdout.split('|')[0], home)
    const { stdout } = await exec('echo "$A$B$C|$LANG|$BOXWOOD_PROCESS_ID"', {
      boxEnv: { A: 'box ', B: 'box ', LANG: 'box' },
      env: { B: 'request ', C: 'ré\nquest', BOXWOOD_PROCESS_ID: 'mine' },
    })
    t.match(stdout, /^box request ré\nquest\|box\|p_[0-9a-f]+\n$/)
  },
)

t.test('commands use the temporary directory of the agent', async (t) => {
  const { exec } = createExecApp(t, { ...process.env, TMPDIR: '/var/box/tmp' })
  t.equal((await exec('echo "$TMPDIR"')).stdout, '/var/box/tmp\n')
})

t.test('cwd is absolute or relative to the home directory, and returned as requested', async (t) => {
  const { exec, home } = createExecApp(t)
  mkdirSync(join(home, 'a b/c'), { recursive: true })
  const pwd = async (cwd?: string) => {
    const result = await exec('pwd', cwd === undefined ? {} : { cwd })
    t.equal(result.cwd, cwd ?? '~')
    return result.stdout
  }
  t.equal(await pwd(), `${home}\n`)
  t.equal(await pwd('~'), `${home}\n`)
  t.equal(await pwd('~/'), `${home}\n`)
  t.equal(await pwd('~/a b'), `${home}/a b\n`)
  t.equal(await pwd('a b/c'), `${home}/a b/c\n`)
  t.equal(await pwd('a b/../a b'), `${home}/a b\n`)
  t.equal(await pwd('/'), '/\n')
})

t.test('rejects a cwd that is not a directory', async (t) => {
  const { expectError, home } = createExecApp(t)
  writeFileSync(join(home, 'file'), '')
  t.match(await expectError({ command: 'pwd', cwd: 'nonexistent' }), { status: 404, code: 'not_found' })
  t.match(await expectError({ command: 'pwd', cwd: 'file' }), { status: 400, code: 'invalid_path' })
  t.match(await expectError({ command: 'pwd', cwd: 'file/below' }), { status: 404, code: 'not_found' })
  t.match(await expectError({ command: 'pwd', cwd: 'x'.repeat(300) }), { status: 400, code: 'invalid_path' })
})

t.test(
  'rejects a cwd without search permission',
  { skip: process.getuid?.() === 0 && 'root may enter every directory' },
  async (t) => {
    const { expectError, home } = createExecApp(t)
    mkdirSync(join(home, 'closed'))
    chmodSync(join(home, 'closed'), 0)
    t.teardown(() => chmodSync(join(home, 'closed'), 0o700))
    t.match(await expectError({ command: 'pwd', cwd: 'closed' }), { status: 403, code: 'permission_denied' })
  },
)

t.test("reports the operating system's error message when a start fails", async (t) => {
  const { expectError, exec } = createExecApp(t)
  const error = await expectError({ command: 'true', env: { A: 'x'.repeat(200_000) } })
  t.match(error, { status: 502, code: 'exec_failed', message: /argument list too long/i })
  t.match(await exec('echo still here'), { stdout: 'still here\n' })
})

t.test('rejects invalid requests', async (t) => {
  const { expectError } = createExecApp(t)
  const cases: [object, string][] = [
    [{}, 'invalid_request'],
    [{ command: ' \n' }, 'invalid_request'],
    [{ command: 'a\0b' }, 'invalid_request'],
    [{ command: 'true', cwd: 'a\nb' }, 'invalid_request'],
    [{ command: 'true', timeoutSeconds: 0.5 }, 'invalid_timeout'],
    [{ command: 'true', timeoutSeconds: 601 }, 'invalid_timeout'],
    [{ command: 'true', timeoutSeconds: '5' }, 'invalid_timeout'],
    [{ command: 'true', env: { 'A=B': 'c' } }, 'invalid_request'],
    [{ command: 'true', env: { A: 'b\0' } }, 'invalid_request'],
    [{ command: 'true', boxEnv: { '': 'c' } }, 'invalid_request'],
    [{ command: 'true', env: { A: 1 } }, 'invalid_request'],
  ]
  for (const [body, code] of cases)
    t.match(await expectError(body), { status: 400, code }, JSON.stringify(body))
})

t.test('a running command counts as activity', async (t) => {
  const { exec, activity } = createExecApp(t)
  const startCalls = t.capture(activity, 'startOperation', activity.startOperation)
  await exec('true')
  t.equal(startCalls().length, 1)
  t.equal(activity.idleSeconds(), 0)
})
