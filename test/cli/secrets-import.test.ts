// box secrets import: the secrets of a .env file are set, or none is.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Secret } from '../../shared/api/secrets.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxOptions, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'])
const { api, instance } = coordinator
/** Each value contains "hidden". */
const box = async (args: string[], options?: BoxOptions) => {
  const result = await runBox(coordinator, ['secrets', ...args], options)
  if (/hidden/.test(result.stdout + result.stderr))
    throw new Error(`A value is in the output: ${result.stderr}`)
  return result
}
const listSecrets = async (): Promise<Secret[]> => (await api('GET', '/secrets')).json.secrets
const names = async () => (await listSecrets()).map(({ name }) => name).sort()
const findSecret = async (name: string) => (await listSecrets()).find((secret) => secret.name === name)
/** The value that a box would send. */
const getValue = async (name: string) => {
  const { db, keyring } = instance.context
  const row = await db
    .selectFrom('secrets')
    .select(['id', 'value', 'workspace_id'])
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  return keyring.open(row.value, { workspaceId: row.workspace_id, rowId: row.id }).reveal()
}
const directory = t.testdir()
const writeEnv = (content: string): string => {
  const path = join(directory, '.env')
  writeFileSync(path, content)
  return path
}

t.beforeEach(async () => {
  for (const { id } of await listSecrets()) await api('DELETE', `/secrets/${id}`)
})
t.test('sets each variable, with the hosts of well-known names', async (t) => {
  const path = writeEnv(
    '# keys\nexport OPENAI_API_KEY="hidden one"\nGITHUB_TOKEN=hidden-two\nDEPLOY_KEY="hidden\\nthree"\n',
  )
  t.match(await box(['import', path, '--host', 'api.example.com', '--host', '*.example.org']), {
    code: 0,
    stdout: '',
    stderr:
      /^OPENAI_API_KEY: created; used in requests to api\.openai\.com\nGITHUB_TOKEN: created; .*\nDEPLOY_KEY: created; used in requests to api\.example\.com, \*\.example\.org\nNext: `box mount NAME OPENAI_API_KEY`\nbox: DEPLOY_KEY has several lines/,
  })
  t.equal(await getValue('OPENAI_API_KEY'), 'hidden one')
  t.equal(await getValue('GITHUB_TOKEN'), 'hidden-two')
  t.equal(await getValue('DEPLOY_KEY'), 'hidden\nthree')
  t.same((await findSecret('DEPLOY_KEY'))?.hosts, ['api.example.com', '*.example.org'])
  t.same((await findSecret('OPENAI_API_KEY'))?.hosts, ['api.openai.com'])
})

t.test('reads stdin, and prints JSON without values', async (t) => {
  const result = await box(['import', '-', '--json'], { stdin: 'GROQ_API_KEY=hidden\nNPM_TOKEN=hidden\n' })
  t.match(result, { code: 0, stderr: '' })
  t.match(JSON.parse(result.stdout), { secrets: [{ name: 'GROQ_API_KEY' }, { name: 'NPM_TOKEN' }] })
  t.match(await box(['import', '-', '-q', '--replace'], { stdin: 'NPM_TOKEN=hidden' }), {
    code: 0,
    stderr: '',
  })
})

t.test('existing secrets need --replace, which keeps their hosts', async (t) => {
  await box(['set', 'TOKEN', '--host', 'api.example.com', '-q'], { stdin: 'hidden-old' })
  const { placeholder } = (await findSecret('TOKEN')) ?? {}
  const path = writeEnv('NPM_TOKEN=hidden\nTOKEN=hidden-new\n')
  t.match(await box(['import', path]), {
    code: 1,
    stderr: 'box: TOKEN already exists. Add --replace to replace the value. Nothing was set.\n',
  })
  t.same(await names(), ['TOKEN'])
  t.equal(await getValue('TOKEN'), 'hidden-old')
  t.match(await box(['import', path, '--replace']), {
    code: 0,
    stderr:
      /NPM_TOKEN: created.*\nTOKEN: the value is replaced for new requests; used in requests to api\.example\.com\n/,
  })
  t.equal(await getValue('TOKEN'), 'hidden-new')
  t.match(await findSecret('TOKEN'), { placeholder, hosts: ['api.example.com'] })
})

t.test('nothing is set when one variable cannot be', async (t) => {
  const refused: [string, string[], number, RegExp][] = [
    [
      'NPM_TOKEN=hidden\nNODE_ENV=hidden\nMY_KEY=hidden\n',
      [],
      2,
      /which hosts need NODE_ENV, MY_KEY\..*--host/,
    ],
    [
      'NPM_TOKEN=hidden\nlower=hidden\n',
      ['--host', 'a.example.com'],
      2,
      /digits and underscores only: lower\. Nothing/,
    ],
    ['NPM_TOKEN=hidden\nGROQ_API_KEY=\n', [], 2, /The value of GROQ_API_KEY is empty/],
    [`NPM_TOKEN=hidden\nGROQ_API_KEY=${'hidden'.repeat(3000)}\n`, [], 2, /larger than 16 KiB/],
    ['NPM_TOKEN=hidden\nGROQ_API_KEY hidden\n', [], 2, /^box: Line 2 of .*\.env: /],
    [
      'NPM_TOKEN=hidden\nMY_KEY=hidden\n',
      ['--host', 'http://x'],
      2,
      /^box: nothing was set\.\nbox: .*\(invalid_host\)/,
    ],
    [
      'NPM_TOKEN=hidden\n',
      ['--host', 'a.example.com'],
      2,
      /--host is for new secrets whose hosts box does not know/,
    ],
    ['# nothing\n', [], 2, /The file has no variables/],
  ]
  for (const [content, args, code, stderr] of refused) {
    t.match(
      await box(['import', writeEnv(content), ...args]),
      { code, stdout: '', stderr },
      content.slice(0, 60),
    )
    t.same(await names(), [])
  }
  t.match(await box(['import', join(directory, 'none')]), { code: 2, stderr: /no such file/ })
  t.match(await box(['import', 'TOKEN=hidden']), {
    code: 2,
    stderr: /The value of a secret is never an argument/,
  })
  t.match(await box(['import', 'a.env', 'hidden']), { code: 2, stderr: /too many arguments/ })
})

t.test('an error in between names the secrets that were set', async (t) => {
  const path = writeEnv('NPM_TOKEN=hidden\nGROQ_API_KEY=hidden\nXAI_API_KEY=hidden\n')
  coordinator.changeNext('POST /api/v1/secrets', (body) => body)
  coordinator.respondNext('POST /api/v1/secrets', 402, { error: 'secret_limit', message: 'It is full.' })
  t.match(await box(['import', path]), {
    code: 1,
    stdout: '',
    stderr: /^box: before this error, NPM_TOKEN was set\.\nbox: It is full\./,
  })
  t.same(await names(), ['NPM_TOKEN'])
})
