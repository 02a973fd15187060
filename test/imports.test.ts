// The import rules hold here, and the checker finds each kind of violation.
import { resolve } from 'node:path'
import t from 'tap'
import { findViolations } from './support/imports.ts'

t.test('the sources keep the rules', async (t) => {
  t.same(findViolations(resolve(import.meta.dirname, '..')), [])
})

const violating: Record<string, [path: string, source: string, told: RegExp]> = {
  'I/O in shared': [
    'shared/a.ts',
    "import { z } from 'zod'\nimport fs from 'node:fs'\n",
    /^shared\/a\.ts:2: imports node:fs/,
  ],
  'one side in another': [
    'cli/deep/a.ts',
    "import { x } from '../../agent/x.ts'\n",
    /imports agent\/x\.ts .*over the wire/,
  ],
  'a type counts too': [
    'agent/a.ts',
    "import type {\n  X,\n} from '../coordinator/x.ts'\n",
    /imports coordinator/,
  ],
  'an import() too': ['agent/a.ts', "const x = await import('../cli/x.ts')\n", /imports cli\/x\.ts/],
  're-exported too': ['agent/a.ts', "export { x } from '../cli/x.ts'\n", /imports cli\/x\.ts/],
  'the tests in a source': ['coordinator/a.ts', "import '../test/support/x.ts'\n", /imports test/],
  'SQL in the edge': ['coordinator/edge/a.ts', "import { sql } from 'kysely'\n", /no SQL/],
  'the database in the edge': ['coordinator/edge/a.ts', "import { db } from '../db/open.ts'\n", /no SQL/],
  'a store of another': [
    'coordinator/http/a.ts',
    "import { s } from '../boxes/store.ts'\n",
    /through the service/,
  ],
  'a driver elsewhere': [
    'coordinator/boxes/store.ts',
    "import { DatabaseSync } from 'node:sqlite'\n",
    /which database/,
  ],
  'a dialect elsewhere': [
    'coordinator/boxes/store.ts',
    "import { SqliteDialect } from 'kysely'\n",
    /which database/,
  ],
  'a default export': [
    'bench/a.ts',
    'const a = 1\nexport default a\n',
    /^bench\/a\.ts:2: has a default export/,
  ],
  'a barrel': ['shared/api/index.ts', "export * from './boxes.ts'\n", /barrel/],
}

for (const [name, [path, source, told]] of Object.entries(violating)) {
  t.test(`finds ${name}`, async (t) => {
    const found = findViolations(t.testdir(tree(path, source)))
    t.match(found, [told])
    t.equal(found.length, 1)
  })
}

t.test('and nothing where there is nothing', async (t) => {
  const source =
    "import { type Kysely, sql } from 'kysely'\nimport { x } from './store.ts'\nimport { z } from '../../shared/x.ts'\n"
  t.same(findViolations(t.testdir(tree('coordinator/boxes/service.ts', source))), [])
})

type Tree = { [name: string]: Tree | string }

const tree = (path: string, source: string): Tree =>
  path.split('/').reduceRight<Tree | string>((inner, name) => ({ [name]: inner }), source) as Tree
