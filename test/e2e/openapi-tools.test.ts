// What other people's tools do with the OpenAPI document: the linter of Redocly reports nothing, and the clients that
// openapi-typescript and @hey-api/openapi-ts generate compile and make calls.
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { installOpenApiTools } from '../support/openapi-tools/install-openapi-tools.ts'
import { LONG_DEADLINE_MS } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

const { skip, nodeModules } = await installOpenApiTools()

const COMPILER_OPTIONS = {
  target: 'es2023',
  module: 'nodenext',
  lib: ['es2023', 'dom', 'dom.iterable'],
  types: [],
  strict: true,
  skipLibCheck: true,
  outDir: 'out',
}

/** A directory with the document of the coordinator, in which the tools run. */
async function setUp(t: Test) {
  const { url, key, box } = await startCoordinatorWithBox(t)
  const dir = t.testdir({})
  symlinkSync(nodeModules, join(dir, 'node_modules'))
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
  writeFileSync(join(dir, 'openapi.json'), await (await fetch(`${url}/openapi.json`)).text())
  const run = async (script: string, ...args: string[]): Promise<string> => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, ...args], {
      cwd: dir,
      env: { ...process.env, BOX_URL: url, BOX_KEY: key, BOX: box.hostname },
      timeout: LONG_DEADLINE_MS,
    }).catch((error) => Promise.reject(new Error(`${script}: ${error.stdout}${error.stderr}`)))
    return stdout + stderr
  }
  const runTool = (path: string, ...args: string[]) => run(join(nodeModules, path), ...args)
  return {
    dir,
    runTool,
    /** Compiles the program with the generated client, and runs it. Returns the JSON that it prints. */
    async runProgram(source: string): Promise<unknown> {
      writeFileSync(join(dir, 'program.ts'), source)
      writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }))
      await runTool('typescript/bin/tsc', '--project', '.')
      return JSON.parse(await run('out/program.js'))
    },
  }
}

t.test('the linter of Redocly reports no error and no warning', { skip }, async (t) => {
  const { runTool } = await setUp(t)
  const output = await runTool('@redocly/cli/bin/cli.js', 'lint', 'openapi.json', '--format=json')
  const { totals } = JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1))
  t.same(totals, { errors: 0, warnings: 0, ignored: 0 }, output)
})

t.test('openapi-typescript generates types with which openapi-fetch makes calls', { skip }, async (t) => {
  const { runTool, runProgram } = await setUp(t)
  await runTool('openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'api.d.ts')
  const printed = await runProgram(`
    import createClient from 'openapi-fetch'
    import type { operations, paths } from './api.js'

    declare const process: { env: Record<'BOX' | 'BOX_KEY' | 'BOX_URL', string> }
    const { BOX: box, BOX_KEY, BOX_URL: baseUrl } = process.env
    const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${BOX_KEY}\` } })
    const list = await client.GET('/api/v1/boxes')
    const hostname: string | undefined = list.data?.boxes[0]?.hostname
    type Exec = operations['commands.run']['requestBody']['content']['application/json']
    const body: Exec = { command: 'echo hello' }
    const exec = await client.POST('/v1/box/{box}/exec', { params: { path: { box } }, body })
    const stdout = exec.data !== undefined && 'stdout' in exec.data ? exec.data.stdout : undefined
    const params = { path: { id: '00000000-0000-4000-8000-000000000000' } }
    const missing = await client.GET('/api/v1/boxes/{id}', { params })
    const code: string | undefined = missing.error?.error
    console.log(JSON.stringify({ hostname, stdout, code }))
  `)
  t.match(printed, { hostname: /^\w+$/, stdout: 'hello\n', code: 'not_found' })
})

t.test('@hey-api/openapi-ts generates a client', { skip }, async (t) => {
  const { dir, runTool, runProgram } = await setUp(t)
  mkdirSync(join(dir, 'client'))
  const plugins = ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk']
  await runTool('@hey-api/openapi-ts/bin/run.js', '-i', 'openapi.json', '-o', 'client', '-p', ...plugins)
  const printed = await runProgram(`
    import { client } from './client/client.gen.js'
    import { boxesGet, boxesList, commandsRun } from './client/index.js'

    declare const process: { env: Record<'BOX' | 'BOX_KEY' | 'BOX_URL', string> }
    const { BOX: box, BOX_KEY: auth, BOX_URL: baseUrl } = process.env
    client.setConfig({ baseUrl, auth })
    const list = await boxesList()
    const hostname: string | undefined = list.data?.boxes[0]?.hostname
    const exec = await commandsRun({ path: { box }, body: { command: 'echo hello' } })
    const stdout = exec.data !== undefined && 'stdout' in exec.data ? exec.data.stdout : undefined
    const missing = await boxesGet({ path: { id: '00000000-0000-4000-8000-000000000000' } })
    const code: string | undefined = missing.error?.error
    console.log(JSON.stringify({ hostname, stdout, code }))
  `)
  t.match(printed, { hostname: /^\w+$/, stdout: 'hello\n', code: 'not_found' })
})
