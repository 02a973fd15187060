// box exec: output, exit codes, arguments, options and time limits.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const exec = (...args: string[]) => runBox(fake.url, ['exec', ...args])

t.test('prints the output of the command and exits with its exit code', async (t) => {
  const command = 'echo grün; echo oops >&2; exit 7'
  t.same(await exec('fig', '--', command), { code: 7, stdout: 'grün\n', stderr: 'oops\n' })
})

t.test('a command killed by signal n exits with 128 + n', async (t) => {
  t.match(await exec('fig', '--', 'kill -TERM $$'), { code: 143 })
})

t.test('quotes each of several arguments, and passes a single argument to the shell unchanged', async (t) => {
  t.match(await exec('fig', '--', 'printf', '<%s>', "it's $HOME", '-n'), { stdout: "<it's $HOME><-n>" })
  t.match(await exec('fig', '--', 'printf "<%s>" a b | wc -c'), { stdout: '6\n' })
})

t.test('--cwd and --env apply to the command', async (t) => {
  const script = 'pwd; echo "$A[$EMPTY]"'
  for (const [cwd, env] of [
    ['--cwd', '--env'],
    ['-w', '-e'],
    ['--workdir', '--env'],
  ] as const) {
    const options = [cwd, '/', env, 'A=b=c', env, 'EMPTY=']
    t.match(await exec('fig', ...options, '--', script), { code: 0, stdout: '/\nb=c[]\n' })
  }
  const inherited = await runBox(fake.url, ['exec', 'fig', '--env', 'INHERITED', '--', 'echo $INHERITED'], {
    env: { INHERITED: 'value' },
  })
  t.match(inherited, { stdout: 'value\n' })
})

t.test('a timeout exits with 124 and a message; a command that exits with 124 has no message', async (t) => {
  t.match(await exec('fig', '--timeout', '1', '--', 'echo a; sleep 60'), {
    code: 124,
    stdout: 'a\n',
    stderr: 'box: the command timed out after 1 s. Use a longer --timeout (up to 600), or none.\n',
  })
  t.same(await exec('fig', '--', 'exit 124'), { code: 124, stdout: '', stderr: '' })
})

t.test('--json prints the result and exits with the code of the command', async (t) => {
  const { code, stdout } = await exec('fig', '--json', '--', 'echo a; exit 3')
  t.equal(code, 3)
  t.match(JSON.parse(stdout), { type: 'exec.result', exitCode: 3, stdout: 'a\n' })
  const timedOut = await exec('fig', '--json', '--timeout', '1', '--', 'sleep 60')
  t.match(timedOut, { code: 124, stderr: /timed out after 1 s\. Use --timeout/ })
})

t.test('Ctrl-C kills the command of --json too', async (t) => {
  const result = await runBox(fake.url, ['exec', 'fig', '--json', '--', 'sleep 60'], {
    onSpawn: (child) => {
      fake.handleNext('POST /v1/box/fig/exec', () => child.kill('SIGINT'))
    },
  })
  t.match(result, { code: 130, stderr: /^box: interrupted; the command on fig was killed\./ })
})

t.test('exits with 125 when box exec itself fails', async (t) => {
  t.match(await exec('nonexistent', '--', 'true'), {
    code: 125,
    stderr: /No such box: 'nonexistent'.*box ls/,
  })
  t.match(await exec('fig'), { code: 125, stderr: /^box: missing required argument/ })
  const timeout = 'box: --timeout must be a number between 1 and 600.\n'
  for (const value of ['soon', '0', '601'])
    t.same(await exec('fig', '--timeout', value, '--', 'true'), { code: 125, stdout: '', stderr: timeout })
  t.match(await runBox('http://127.0.0.1:1', ['exec', 'fig', '--', 'true']), {
    code: 125,
    stderr: /Cannot reach/,
  })
})
