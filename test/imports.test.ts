// The sources follow the import rules, and the checker reports each kind of violation.
import { resolve } from 'node:path'
import t from 'tap'
import { findViolations } from './support/imports.ts'

t.test('the sources follow the rules', async (t) => {
  t.same(findViolations(resolve(import.meta.dirname, '..')), [])
})

const violations: Record<string, [path: string, source: string, message: RegExp]> = {
  'I/O in shared': [
    'shared/a.ts',
    "import { z } from 'zod'\nimport fs from 'node:fs'\n",
    /^shared\/a\.ts:2: imports node:fs/,
  ],
  'an import from another component': [
    'cli/deep/a.ts',
    "import { x } from '../../agent/x.ts'\n",
    /imports agent\/x\.ts .*over the wire/,
  ],
  'a type-only import': [
    'agent/a.ts',
    "import type {\n  X,\n} from '../coordinator/x.ts'\n",
    /imports coordinator/,
  ],
  'a dynamic import': ['agent/a.ts', "const x = await import('../cli/x.ts')\n", /imports cli\/x\.ts/],
  'a re-export': ['agent/a.ts', "export { x } from '../cli/x.ts'\n", /imports cli\/x\.ts/],
  'an import from the tests': ['coordinator/a.ts', "import '../test/support/x.ts'\n", /imports test/],
  'SQL in the edge': ['coordinator/edge/a.ts', "import { sql } from 'kysely'\n", /no SQL/],
  'the database in the edge': ['coordinator/edge/a.ts', "import { db } from '../db/open.ts'\n", /no SQL/],
  "another directory's store": [
    'coordinator/http/a.ts',
    "import { s } from '../boxes/store.ts'\n",
    /through the service/,
  ],
  'a database driver outside coordinator/db': [
    'coordinator/boxes/store.ts',
    "import { DatabaseSync } from 'node:sqlite'\n",
    /which database/,
  ],
  'a database dialect outside coordinator/db': [
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
  'a file that imports itself': [
    'agent/a.ts',
    "import './a.ts'\n",
    /^agent\/a\.ts:1: imports agent\/a\.ts \(/,
  ],
}

for (const [name, [path, source, message]] of Object.entries(violations)) {
  t.test(`reports ${name}`, async (t) => {
    const found = findViolations(t.testdir(createTree(path, source)))
    t.match(found, [message])
    t.equal(found.length, 1)
  })
}

t.test('reports nothing for a file that follows the rules', async (t) => {
  const source =
    "import { type Kysely, sql } from 'kysely'\nimport { x } from './store.ts'\nimport { z } from '../../shared/x.ts'\n"
  t.same(findViolations(t.testdir(createTree('coordinator/boxes/service.ts', source))), [])
})

t.test('reports the shortest import cycle, also of type-only imports, in every component', async (t) => {
  const dir = t.testdir({
    agent: {
      'a.ts': "import { b } from './b.ts'\n",
      'b.ts': "import { c } from './c.ts'\n",
      'c.ts': "import { a } from './a.ts'\nimport type { D } from './deep/d.ts'\n",
      deep: { 'd.ts': "export type { C } from '../c.ts'\n" },
      'entry.ts': "import './a.ts'\n",
    },
    cli: {
      'a.ts': "import '../shared/x.ts'\nimport { b } from './b.ts'\n",
      'b.ts': "import { c } from './c.ts'\n",
      'c.ts': "const { a } = await import('./a.ts')\n",
    },
    shared: { 'x.ts': 'export const x = 1\n' },
  })
  const reason = '(a circle of imports has no order in which to be read)'
  t.same(findViolations(dir), [
    `agent/c.ts:2: imports agent/deep/d.ts, which imports agent/c.ts ${reason}`,
    `cli/a.ts:2: imports cli/b.ts, which imports cli/c.ts, which imports cli/a.ts ${reason}`,
  ])
})

t.test('allows tests to import each other in a circle', async (t) => {
  const dir = t.testdir({ test: { 'a.ts': "import './b.ts'\n", 'b.ts': "import './a.ts'\n" } })
  t.same(findViolations(dir), [])
})

type Tree = { [name: string]: Tree | string }

const createTree = (path: string, source: string): Tree =>
  path.split('/').reduceRight<Tree | string>((inner, name) => ({ [name]: inner }), source) as Tree
