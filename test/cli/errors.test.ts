// Errors of the box command: JSON errors, exit codes for wrong usage, hints for words of other tools, --verbose.
import t from 'tap'
import { createLimitedKey } from '../support/limited-key.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'
import { getUsageError } from './usage-error.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const box = (...args: string[]) => runBox(coordinator, args)

/** Runs a command that fails, and returns the exit code and the error object, which is all of stderr. */
async function getJsonError(...args: string[]) {
  const { code, stdout, stderr } = await box(...args)
  t.equal(stdout, '', args.join(' '))
  t.match(stderr, /^\{.*\}\n$/, 'one line')
  return { code, ...(JSON.parse(stderr) as { error: { code: string; message: string } }) }
}

t.test('with --json, an error is one JSON object with a code and a message', async (t) => {
  t.same(await getJsonError('create', 'fig', '--json'), {
    code: 1,
    error: { code: 'name_taken', message: 'A box named fig already exists. Choose another name.' },
  })
  const refusal = { message: 'The plan has 2 boxes.', limit: 2, ok: '\u202e' }
  coordinator.respondNext('POST /api/v1/boxes', 403, { error: 'box_limit', ...refusal })
  t.same(await getJsonError('create', 'plum', '--json'), {
    code: 1,
    error: { code: 'box_limit', ...refusal },
  })
  t.match(await getJsonError('show', 'none', '--json'), {
    code: 5,
    error: { code: 'no_such_box', message: /No such box/ },
  })
  t.match(await getJsonError('ls', '-o', 'json', '--filter', 'x=y'), { code: 2, error: { code: 'usage' } })
  t.match(await getJsonError('exec', '--json', 'none', 'ls'), { code: 125, error: { code: 'no_such_box' } })
  t.match(await runBox('http://127.0.0.1:1', ['ls', '--output=json']), {
    code: 3,
    stderr: /^\{"error":\{"code":"unreachable","message":"Cannot reach the coordinator/,
  })
  t.match(await runBox(coordinator, ['me', '--json'], { env: { BOXWOOD_API_KEY: 'dcp_wrong' } }), {
    code: 4,
    stderr: /"code":"unauthorized"/,
  })
})

t.test('the URL of the boxes cannot be reached', async (t) => {
  coordinator.changeNext('GET /api/v1/me?box=fig', (account) => {
    account.edge.url = 'http://127.0.0.1:1'
  })
  const { code, stderr } = await box('exec', 'fig', 'ls')
  t.equal(code, 125)
  t.match(
    stderr,
    `Cannot reach the boxes at http://127.0.0.1:1 (connection refused). ${coordinator.url} reports this URL`,
  )
})

t.test('wrong usage is a JSON error too, before and after --json', async (t) => {
  for (const args of [
    ['create', '--json', '--ttl', 'long'],
    ['create', '--ttl', 'long', '--json'],
    ['ls', '--wrong', '--json'],
    ['ls', '-ojson', '--wrong'],
    ['show', '--json'],
    ['paint', '--json'],
  ])
    t.match(await getJsonError(...args), { code: 2, error: { code: 'usage' } }, args.join(' '))
})

t.test('several boxes have one JSON error per line', async (t) => {
  const { code, stdout, stderr } = await box('stop', 'one', 'fig', 'two', '--json')
  t.equal(code, 5)
  t.match(JSON.parse(stdout), { hostname: 'fig' })
  await box('start', 'fig')
  t.match(
    stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
    [{ error: { message: /'one'/ } }, { error: { message: /'two'/ } }],
  )
})

t.test('the options of a command on the box do not select the format', async (t) => {
  const exec = (...args: string[]) => box('exec', ...args)
  t.match(await exec('none', 'jq', '--json'), { code: 125, stderr: /^box: No such box/ })
  t.match(await exec('none', '--', 'jq', '--json'), { code: 125, stderr: /^box: No such box/ })
})

t.test('a timeout with --json is a JSON error', async (t) => {
  const { code, stdout, stderr } = await box('exec', '--json', '--timeout', '1', 'fig', 'sleep 60')
  t.equal(code, 124)
  t.match(JSON.parse(stdout), { timedOut: true })
  t.match(JSON.parse(stderr), { error: { code: 'timed_out', message: /timed out after 1 s/ } })
})

t.test('values that the API rejects are wrong usage: exit code 2', async (t) => {
  for (const code of ['invalid_name', 'invalid_tier', 'invalid_region', 'invalid_env', 'bad_request']) {
    coordinator.failNext('POST /api/v1/boxes', (response) => {
      response.writeHead(400).end(JSON.stringify({ error: code, message: 'tier must be one of nano, micro' }))
    })
    t.same(await box('create', '--tier', 'huge'), {
      code: 2,
      stdout: '',
      stderr: `box: tier must be one of nano, micro (${code})\n`,
    })
  }
})

t.test('words of other tools get the command to use', async (t) => {
  const hints: [string[], RegExp][] = [
    [['auth'], /box login URL.*box use.*box me/],
    [['console', 'fig'], /box ssh NAME/],
    [['stats', 'fig'], /box metrics NAME.*box top NAME.*box show NAME/],
    [['procs-at', 'fig'], /box ps-at NAME/],
    [['metrics', 'fig', '--since', '1h'], /Use --last/],
    [['htop', 'fig'], /box top NAME/],
    [['port', 'fig'], /box ports NAME/],
    [['build'], /builds no images.*box template NAME/],
    [['pull', 'debian'], /box images pull IMAGE.*box cp/],
    [['hibernate', 'fig'], /box suspend NAME.*box stop NAME/],
    [['shutdown', 'fig'], /box stop NAME/],
    [['resume', 'fig'], /box start NAME/],
    [['get', 'boxes'], /box ls/],
    [['tail', 'fig'], /box logs -f NAME/],
    ...[
      ['port-forward'],
      ['tunnel'],
      ['expose'],
      ['url'],
      ['preview'],
      ['proxy'],
      ['ssh', '-L'],
      ['run', '-p'],
    ].map((words): [string[], RegExp] => [
      [...words, 'fig'],
      /`box share NAME PORT`.*`box forward NAME PORT`/,
    ]),
    [['create', '--publish', '80'], /`box share NAME PORT`.*`box forward NAME PORT`/],
    [['urls'], /`box shares`.*`box unshare NAME PORT`/],
    [['alias'], /aliases. Use those of your shell/],
    [['diff', 'fig', 'plum'], /diff <\(box exec NAME/],
    [['code', 'fig'], /box ssh-config/],
    [['vnc', 'fig'], /box desktop start NAME/],
    [['browser', 'fig'], /box desktop start NAME --mode browser/],
    [['update'], /box upgrade.*box set NAME/],
    [['restore-backup', 'x.tar'], /boxwood restore FILE.*box backup FILE/],
    [['scale', 'fig'], /box resize NAME TIER/],
    [['migrate', 'fig'], /box move NAME REGION/],
    [['edit', 'fig'], /box set NAME/],
    [['secrets', 'fig'], /box secrets set SECRET.*box mount NAME SECRET/],
    [['secrets', 'set', 'TOKEN', 'abc'], /never an argument.*box secrets set SECRET <file/],
    [['secrets', 'rotate', 'TOKEN', '--value', 'abc'], /never an argument/],
    [['vault'], /box secrets set SECRET/],
    [['vars', 'fig'], /box env NAME A=1.*box environments set ENVIRONMENT A=1/],
    [['create', '--secret', 'TOKEN'], /box mount NAME SECRET/],
    [['resize', 'fig', '--tier', 'pro'], /box resize NAME TIER/],
    [['clone', 'fig'], /box fork NAME/],
    [['commit', 'fig'], /box snapshot NAME.*box template NAME/],
    [['checkpoint', 'fig'], /box snapshot NAME/],
    [['rollback', 'fig'], /box restore SNAPSHOT/],
    [['rmi', 'fig'], /box snapshots rm SNAPSHOT/],
    [['mv', 'fig', 'plum'], /box rename NAME NEWNAME.*box files mv/],
    [['create', '--template', 'web'], /Use --from/],
    [['up', 'fig'], /starts the coordinator\. To start a box: `\S*box start NAME`/],
    [['down', 'fig'], /To stop a box: `\S*box stop NAME`/],
    [['fork', '--image', 'debian'], /Use --image with `\S*box create`/],
    [['create', '--cpus', '4'], /--tier sets the CPUs/],
    [['ls', '--debug'], /Use --verbose/],
  ]
  for (const [args, hint] of hints) {
    const { exitCode, message } = await getUsageError(args)
    t.equal(exitCode, 2, args.join(' '))
    t.match(message, hint)
    t.match(message, /^[^:]*(unknown|too many)/)
    t.notMatch(message, /error:|--help|Did you mean/)
  }
  t.match(await box('auth'), { code: 2, stdout: '', stderr: /^box: unknown command 'auth'\n.*box login URL/ })
  t.match(await box('exec', '-u', 'root', 'fig', 'id'), { code: 125, stderr: /user of the box/ })
  t.match(await box('exec', 'fig'), { code: 125, stderr: /missing.*\n.*For a terminal: `\S*box ssh NAME`/ })
  for (const image of [['ubuntu:24.04', 'bash'], ['debian'], ['ghcr.io/org/tool']])
    t.match(await box('run', ...image), {
      code: 125,
      stderr: /^box: For an image, use --image: `\S*box run --image debian:12 -- COMMAND`/,
    })
  t.match(await box('run', '--rm', '-q', '--', 'x'), {
    code: 125,
    stderr: /^box: unknown option '-q'\n.*See '\S*box run --help'/s,
  })
  t.match(await box('run', '--rm', '-q', 'x'), {
    code: 125,
    stderr: /unknown option '-q'\nWrite `--` before/,
  })
})

t.test('a mistyped name of a box gets a similar one, in every command', async (t) => {
  const stderr = /No such box: 'fgi'\. Did you mean fig\? Run `\S*box ls`/
  for (const args of [
    ['logs', 'fgi'],
    ['show', 'fgi'],
    ['exec', 'fgi', 'id'],
    ['top', 'fgi'],
    ['cp', 'fgi:a', '.'],
  ])
    t.match((await box(...args)).stderr, stderr, args.join(' '))
  t.notMatch((await box('show', 'grapefruit')).stderr, /Did you mean/)
})

t.test('a key whose boxes are deleted is not advised to create one', async (t) => {
  const { id } = await coordinator.addBox('plum')
  const key = await createLimitedKey(coordinator, { boxIds: [id] })
  await box('rm', 'plum')
  t.match(await runBox({ url: coordinator.url, key }, ['ls']), {
    code: 0,
    stderr: 'No boxes: this API key is limited to a box that does not exist any more.\n',
  })
})

t.test('some words of other tools are aliases', async (t) => {
  for (const word of ['inspect', 'describe', 'info'])
    t.match(await box(word, 'fig'), { code: 0, stdout: /^name +fig$/m })
  t.match(await box('help', 'inspect'), { code: 0, stdout: /^Usage: box show/ })
  t.match(await box('scp', 'none', 'fig:'), { code: 5, stderr: /none/ })
  t.notMatch((await box('--help')).stdout, /inspect|describe|scp/)
})

t.test('an unknown word gets a similar command, in help too', async (t) => {
  const message = (word: string, hint: string) => ({
    code: 2,
    stdout: '',
    stderr: `box: unknown command '${word}'\n${hint}See 'box --help'.\n`,
  })
  const env = { BOXWOOD_COMMAND: '' }
  t.match(await runBox(coordinator, ['crate'], { env }), {
    code: 2,
    stderr: /^box: unknown command 'crate'\n\(Did you mean create\?\)\n/,
  })
  for (const args of [['help', 'nosuch'], ['nosuch', '--help'], ['nosuch']]) {
    const { code, stdout, stderr } = await box(...args)
    t.same({ code, stdout, stderr: stderr.replace(/'\S*box --help'/, "'box --help'") }, message('nosuch', ''))
  }
})

t.test('--verbose prints each request, without the key', async (t) => {
  const trace = (method: string, path: string, status: number | string) =>
    new RegExp(`^box: ${method} ${coordinator.url}${path}: ${status}, \\d+ ms$`, 'm')
  for (const result of [
    await box('--verbose', 'show', 'fig'),
    await box('show', 'fig', '--verbose'),
    await runBox(coordinator, ['show', 'fig'], { env: { BOXWOOD_DEBUG: '1' } }),
  ]) {
    t.match(result, { code: 0, stdout: /^name +fig$/m })
    t.match(result.stderr, trace('GET', '/api/v1/boxes\\?box=fig', 200))
    t.notOk(result.stderr.includes(coordinator.key))
  }
  const exec = await box('exec', '--verbose', 'fig', 'echo', '--verbose')
  t.match(exec, { code: 0, stdout: '--verbose\n', stderr: trace('POST', '/v1/box/fig/exec', 200) })
  t.match(exec.stderr, trace('GET', '/v1/box/fig/exec/[^ ]*/attach[^ ]*', 101))
  t.same(await box('exec', 'fig', 'echo', '--verbose'), { code: 0, stdout: '--verbose\n', stderr: '' })
  coordinator.failNext('GET /api/v1/boxes', (response) => {
    response.writeHead(500, { 'x-request-id': 'req-7' }).end('{"error":"internal_error","message":"No."}')
  })
  t.match(await box('ls', '--verbose'), { code: 1, stderr: /boxes\?live=1: 500, \d+ ms, request req-7\n/ })
  t.match(await runBox('http://127.0.0.1:1', ['ls', '--verbose']), {
    code: 3,
    stderr: /boxes\?live=1: failed: .*, \d+ ms\n/,
  })
})
