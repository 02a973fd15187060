// box exec ends as the command on the box ended, and passes on what it printed.
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const exec = (...args: string[]) => runBox(fake.url, ['exec', ...args])

t.test('output and exit code are the command’s own', async (t) => {
  const line = 'echo grün; echo oops >&2; exit 7'
  t.same(await exec('fig', '--', line), { code: 7, stdout: 'grün\n', stderr: 'oops\n' })
})

t.test('a signal is reported as a shell does', async (t) => {
  t.match(await exec('fig', '--', 'kill -TERM $$'), { code: 143 })
})

t.test('several arguments are words, one is a line for the shell', async (t) => {
  t.match(await exec('fig', '--', 'printf', '<%s>', "it's $HOME", '-n'), { stdout: "<it's $HOME><-n>" })
  t.match(await exec('fig', '--', 'printf "<%s>" a b | wc -c'), { stdout: '6\n' })
})

t.test('cwd and variables reach the command', async (t) => {
  const seen = await exec(
    'fig',
    '--cwd',
    '/',
    '--env',
    'A=b=c',
    '--env',
    'EMPTY=',
    '--',
    'pwd; echo "$A[$EMPTY]"',
  )
  t.match(seen, { code: 0, stdout: '/\nb=c[]\n' })
  const inherited = await runBox(fake.url, ['exec', 'fig', '--env', 'HERE', '--', 'echo $HERE'], {
    env: { HERE: 'there' },
  })
  t.match(inherited, { stdout: 'there\n' })
})

t.test('the time limit exits with 124 and says so; a command’s own 124 does not', async (t) => {
  t.match(await exec('fig', '--timeout', '1', '--', 'echo a; sleep 60'), {
    code: 124,
    stdout: 'a\n',
    stderr: /time limit of 1 s/,
  })
  t.same(await exec('fig', '--', 'exit 124'), { code: 124, stdout: '', stderr: '' })
})

t.test('--json prints the result and still exits with the code', async (t) => {
  const seen = await exec('fig', '--json', '--', 'echo a; exit 3')
  t.equal(seen.code, 3)
  t.match(JSON.parse(seen.stdout), { type: 'exec.result', exitCode: 3, stdout: 'a\n' })
})

t.test('cut output is said on stderr', async (t) => {
  fake.answerNext('POST /v1/box/fig/exec', (response) => {
    response.end(
      JSON.stringify({ exitCode: 0, signal: null, stdout: 'tail', stderr: '', stdoutTruncated: true }),
    )
  })
  t.match(await exec('fig', '--', 'yes'), { code: 0, stdout: 'tail', stderr: /last 1 MiB of stdout/ })
})

t.test('what exec itself gets wrong is 125, apart from the command’s codes', async (t) => {
  t.match(await exec('nowhere', '--', 'true'), { code: 125, stderr: /no box nowhere.*box ls/ })
  t.match(await exec('fig'), { code: 125, stderr: /missing required argument/ })
  t.match(await exec('fig', '--timeout', 'soon', '--', 'true'), { code: 125, stderr: /number/ })
  t.match(await runBox('http://127.0.0.1:1', ['exec', 'fig', '--', 'true']), {
    code: 125,
    stderr: /Cannot reach/,
  })
})

t.test('Ctrl-C ends the command on the box, and tells how one goes on', async (t) => {
  const seen = await runBox(fake.url, ['exec', 'fig', '--', 'touch started; sleep 60; touch done'], {
    meanwhile: (child) => {
      fake.answerNext('POST /v1/box/fig/exec', () => child.kill('SIGINT'))
    },
  })
  t.match(seen, {
    code: 130,
    stderr: /was ended with the request.*\n {2}box exec -d fig -- 'touch started; /,
  })
})

t.test('a reader that leaves is no crash', async (t) => {
  const seen = await runBox(fake.url, ['exec', 'fig', '--', 'head -c 900000 /dev/zero'], {
    meanwhile: (child) => child.stdout?.destroy(),
  })
  t.same(seen, { code: 141, stdout: '', stderr: '' })
})
