// The generated part of the client is that of the OpenAPI document. `npm run client:generate` writes it.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { type Document, generateRoutes, generateTypes } from './generate.ts'

const DIR = join(PROJECT_DIR, 'client/generated')
const isWrite = process.env.BOXWOOD_GENERATE === '1'

/** Formats the text as `npm run format` does. */
const format = (name: string, text: string): string =>
  execFileSync(
    join(PROJECT_DIR, 'node_modules/.bin/biome'),
    ['check', '--write', `--stdin-file-path=client/generated/${name}`],
    {
      input: text,
      cwd: PROJECT_DIR,
      encoding: 'utf8',
      maxBuffer: 16 * 1024 * 1024,
    },
  )

const { send } = await startTestCoordinator(t)
const document: Document = (await send('GET', '/openapi.json', undefined, { key: null })).json
for (const [name, text] of [
  ['types.ts', await generateTypes(document)],
  ['routes.ts', generateRoutes(document)],
] as const) {
  const expected = format(name, text)
  if (isWrite) writeFileSync(join(DIR, name), expected)
  t.ok(
    readFileSync(join(DIR, name), 'utf8') === expected,
    `client/generated/${name} is up to date: run npm run client:generate`,
  )
}
