// box exec: output, exit codes, arguments, time limits and interruptions.
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
  const options = ['--cwd', '/', '--env', 'A=b=c', '--env', 'EMPTY=']
  t.match(await exec('fig', ...options, '--', 'pwd; echo "$A[$EMPTY]"'), { code: 0, stdout: '/\nb=c[]\n' })
  const inherited = await runBox(fake.url, ['exec', 'fig', '--env', 'INHERITED', '--', 'echo $INHERITED'], {
    env: { INHERITED: 'value' },
  })
  t.match(inherited, { stdout: 'value\n' })
})

t.test('a timeout exits with 124 and a message; a command that exits with 124 has no message', async (t) => {
  t.match(await exec('fig', '--timeout', '1', '--', 'echo a; sleep 60'), {
    code: 124,
    stdout: 'a\n',
    stderr: 'box: the command timed out after 1 s. Use --timeout (up to 600), or run it detached with -d.\n',
  })
  t.same(await exec('fig', '--', 'exit 124'), { code: 124, stdout: '', stderr: '' })
})

t.test('--json prints the result and exits with the code of the command', async (t) => {
  const { code, stdout } = await exec('fig', '--json', '--', 'echo a; exit 3')
  t.equal(code, 3)
  t.match(JSON.parse(stdout), { type: 'exec.result', exitCode: 3, stdout: 'a\n' })
})

t.test('reports truncated output on stderr', async (t) => {
  fake.handleNext('POST /v1/box/fig/exec', (response) => {
    response.end(
      JSON.stringify({ exitCode: 0, signal: null, stdout: 'tail', stderr: '', stdoutTruncated: true }),
    )
  })
  t.match(await exec('fig', '--', 'yes'), { code: 0, stdout: 'tail', stderr: /last 1 MiB of stdout/ })
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

t.test('Ctrl-C kills the command on the box and prints how to run it detached', async (t) => {
  const result = await runBox(fake.url, ['exec', 'fig', '--', 'touch started; sleep 60; touch done'], {
    onSpawn: (child) => {
      fake.handleNext('POST /v1/box/fig/exec', () => child.kill('SIGINT'))
    },
  })
  t.match(result, {
    code: 130,
    stderr: /^box: interrupted; the command on fig was killed\..*\n {2}box exec -d fig -- 'touch started; /s,
  })
})

t.test('exits with 141 and no message when the reader of stdout closes the pipe', async (t) => {
  const result = await runBox(fake.url, ['exec', 'fig', '--', 'head -c 900000 /dev/zero'], {
    onSpawn: (child) => child.stdout?.destroy(),
  })
  t.same(result, { code: 141, stdout: '', stderr: '' })
})
