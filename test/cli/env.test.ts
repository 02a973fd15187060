// box env: lists, sets and removes the variables of a box; .env files.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { formatEnvLine } from '../../cli/env/env-file.ts'
import { parseEnvFile } from '../../cli/env/parse-env-file.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { id } = await coordinator.findBox('fig')
const box = (...args: string[]) => runBox(coordinator, args)
const setVariables = (env: Record<string, string>) => coordinator.api('PATCH', `/boxes/${id}`, { env })
const getVariables = async () =>
  Object.fromEntries((await coordinator.findBox('fig')).envVars.map(({ name, value }) => [name, value]))
const dir = createTempDir(t, 'env')

t.beforeEach(() => setVariables({ A: '1', TEXT: 'two words' }))

t.test('lists the variables as lines, as JSON, or one value', async (t) => {
  t.same(await box('env', 'fig'), { code: 0, stdout: 'A=1\nTEXT=two words\n', stderr: '' })
  t.same(JSON.parse((await box('env', 'fig', '--json')).stdout), { A: '1', TEXT: 'two words' })
  t.same(await box('env', 'fig', 'TEXT'), { code: 0, stdout: 'two words\n', stderr: '' })
  t.match(await box('env', 'fig', 'B'), { code: 5, stderr: /B is not set on fig/ })
  await setVariables({})
  t.same(await box('env', 'fig'), { code: 0, stdout: '', stderr: 'No variables on fig.\n' })
})

t.test('sets and removes variables, and keeps the others', async (t) => {
  t.same(await box('env', 'fig', 'B=x=y', 'A=', '--unset', 'TEXT'), {
    code: 0,
    stdout: '',
    stderr: 'fig: 2 set, 1 removed; for new commands\n',
  })
  t.same(await getVariables(), { A: '', B: 'x=y' })
  t.match(await box('env', 'fig', 'A='), { stderr: 'fig: no change\n' })
  t.match(await box('env', 'fig', '1A=x'), { code: 2, stderr: /'1A=x' must be NAME=VALUE/ })
  t.match(await box('env', 'fig', 'A=1', 'B'), { code: 2, stderr: /'B' must be NAME=VALUE/ })
  t.match(await box('env', 'fig', '--clear'), { code: 0, stderr: 'fig: 2 removed; for new commands\n' })
  t.same(await getVariables(), {})
})

t.test('names the secret that a variable could be, once', async (t) => {
  const hint =
    /^fig: .*\nEverything on a box can read OPENAI_API_KEY\. `box secrets set OPENAI_API_KEY` and `box mount fig OPENAI_API_KEY` keep its value off the box\.\n$/
  t.match((await box('env', 'fig', 'ACME_TOKEN=x', 'OPENAI_API_KEY=sk-1')).stderr, hint)
  t.equal((await box('env', 'fig', 'OPENAI_API_KEY=sk-1')).stderr, 'fig: no change\n')
  t.match((await box('env', 'fig', 'ACME_TOKEN=y')).stderr, /can read ACME_TOKEN/)
  for (const args of [
    ['env', 'fig', 'OPENAI_API_KEY=sk-2', '-q'],
    ['env', 'fig', 'PATH_TO_TOKENS=x'],
  ])
    t.notMatch((await box(...args)).stderr, /Everything/, args.join(' '))
})

t.test('reads .env files, from a path and from stdin', async (t) => {
  const path = join(dir, '.env')
  writeFileSync(path, '# comment\nexport TOKEN="a b"\nLINES="1\n2"\n')
  t.match(await box('env', 'fig', '--clear', '--file', path, 'TOKEN=c'), { code: 0 })
  t.same(await getVariables(), { TOKEN: 'c', LINES: '1\n2' })
  const { stdout: lines } = await box('env', 'fig')
  t.match(await runBox(coordinator, ['env', 'fig', '--clear', '--file', '-'], { stdin: lines }), {
    stderr: /no change/,
  })
  t.match(await box('env', 'fig', '--file', join(dir, 'none')), {
    code: 2,
    stderr: /Cannot read .*no such file/,
  })
})

t.test('a line that cannot be read is named, and nothing is set', async (t) => {
  const set = (stdin: string | Buffer, command: string[] = ['env', 'fig']) =>
    runBox(coordinator, [...command, '--file', '-'], { stdin })
  t.match(await set('B=1\nAPI_KEY: secret\nC=2\n'), {
    code: 2,
    stdout: '',
    stderr: 'box: Line 2 of the standard input: write NAME=VALUE instead of NAME: VALUE. Nothing was set.\n',
  })
  t.match(await set('B="\n1"\n\nsome words'), { code: 2, stderr: /Line 4 of .*: this is not NAME=VALUE/ })
  const utf16 = Buffer.from('\ufeffB=1\n', 'utf16le')
  t.match(await set(utf16), { code: 2, stderr: /Line 1 of .*: this is not UTF-8/ })
  t.match(await set(Buffer.from('B=1\nC=caf\xe9\n', 'latin1')), { code: 2, stderr: /Line 2 of/ })
  t.same(await getVariables(), { A: '1', TEXT: 'two words' })
  await coordinator.api('POST', '/environments', { name: 'web' })
  t.match(await set('B=1\nwords', ['environments', 'set', 'web']), { code: 2, stderr: /Line 2 of/ })
  t.match(await set('B=1\nwords', ['environments', 'create', 'site']), { code: 2, stderr: /Line 2 of/ })
  t.match((await coordinator.api('GET', '/environments')).json, {
    environments: [{ name: 'web', latestVersionNo: 1 }],
  })
})

t.test('a value with escaped quotes arrives whole', async (t) => {
  const json = '{"k":"v","re":"a\\\\b"}'
  const escaped = json.replaceAll(/["\\]/g, '\\$&')
  t.match(await runBox(coordinator, ['env', 'fig', '--file', '-'], { stdin: `\ufeffB="${escaped}"\r\n` }), {
    code: 0,
  })
  t.equal((await getVariables()).B, json)
  t.equal((await box('env', 'fig', 'B')).stdout, `${json}\n`)
})

t.test('a terminal gets no control characters, a pipe the exact value', async (t) => {
  await setVariables({ A: '\u001b[2J' })
  t.equal((await box('env', 'fig', 'A')).stdout, '\u001b[2J\n')
  const pty = runBoxInPty(t, coordinator, 'box env fig; box env fig A')
  await pty.waitForExit()
  t.notOk(pty.output.includes('\u001b[2J'))
  t.match(pty.output, /A='?\uFFFD\[2J/)
})

t.test('--verbose prints no values', async (t) => {
  const { stderr } = await box('env', 'fig', 'TOKEN=very-secret', '--verbose')
  t.match(stderr, /PATCH http/)
  t.notMatch(stderr, /very-secret|two words/)
})

t.test('every line is read as the value that it was written for', async (t) => {
  for (const value of [
    '',
    ' ',
    'a b',
    ' a ',
    'a#b',
    '#',
    "it's",
    '"',
    `'"`,
    '\'"\n',
    'a\nb',
    '\\n',
    '$A',
    '`',
    'ü',
  ])
    t.same(parseEnvFile(`${formatEnvLine('A', value)}\nEND=1\n`), { variables: { A: value, END: '1' } })
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab\n\r\t \\\'"`#$={}ü') }), (value) => {
      t.same(parseEnvFile(`${formatEnvLine('A', value)}\nEND=1\n`), { variables: { A: value, END: '1' } })
    }),
  )
})
