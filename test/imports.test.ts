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
    'cli/output/a.ts',
    "import { x } from '../../agent/x.ts'\n",
    /imports agent\/x\.ts .*over the wire/,
  ],
  'an import of the CLI in the tools of box mcp': [
    'mcp/tools/a.ts',
    "import { x } from '../../cli/x.ts'\n",
    /imports cli\/x\.ts .*through the client/,
  ],
  'the client in another room of the coordinator': [
    'coordinator/edge/a.ts',
    "import { x } from '../../client/x.ts'\n",
    /imports client\/x\.ts .*over the wire/,
  ],
  'a package in the client': [
    'client/http/a.ts',
    "import { request } from 'node:http'\n",
    /imports node:http .*every runtime/,
  ],
  'code of shared in the client': [
    'client/http/a.ts',
    "import { LIMITS } from '../../shared/limits.ts'\n",
    /imports shared\/limits\.ts .*every runtime/,
  ],
  'a type-only import': [
    'agent/a.ts',
    "import type {\n  X,\n} from '../coordinator/x.ts'\n",
    /imports coordinator/,
  ],
  'a dynamic import': ['agent/a.ts', "const x = await import('../cli/x.ts')\n", /imports cli\/x\.ts/],
  'a re-export': ['agent/a.ts', "export { x } from '../cli/x.ts'\n", /imports cli\/x\.ts/],
  'an import from the tests': ['coordinator/base/a.ts', "import '../../test/support/x.ts'\n", /imports test/],
  'SQL in the edge': ['coordinator/edge/a.ts', "import { sql } from 'kysely'\n", /no SQL/],
  'the database in the edge': ['coordinator/edge/a.ts', "import { db } from '../db/open.ts'\n", /no SQL/],
  "another directory's store": [
    'coordinator/edge/a.ts',
    "import { s } from '../http/idempotency-store.ts'\n",
    /through the service/,
  ],
  "another room's directory of stores": [
    'coordinator/edge/a.ts',
    "import { s } from '../boxes/store/boxes.ts'\n",
    /through the service/,
  ],
  'queries outside a store': [
    'coordinator/boxes/service.ts',
    "import { sql } from 'kysely'\n",
    /SQL is in stores/,
  ],
  'an import of a later room': [
    'coordinator/identity/keys/a.ts',
    "import type { Box } from '../../boxes/service.ts'\n",
    /imports coordinator\/boxes\/service\.ts, of a later room/,
  ],
  'an import of a later room of the agent': [
    'agent/vitals/a.ts',
    "import { x } from '../exec/x.ts'\n",
    /imports agent\/exec\/x\.ts, of a later room/,
  ],
  'an import of a later room of the CLI': [
    'cli/output/a.ts',
    "import { x } from '../commands/x.ts'\n",
    /imports cli\/commands\/x\.ts, of a later room/,
  ],
  'a file in no room': ['coordinator/new/a.ts', 'export const x = 1\n', /is in no room/],
  'a file of the CLI in no room': ['cli/new/a.ts', 'export const x = 1\n', /is in no room/],
  'a table that is written by another directory': [
    'coordinator/identity/members/store.ts',
    "export const f = (db) => db\n  .updateTable('boxes')\n",
    /^coordinator\/identity\/members\/store\.ts:2: writes the table boxes \(its owner is boxes\/store/,
  ],
  'a table that is written in SQL text': [
    'coordinator/edge/store.ts',
    'export const f = sql`update boxes set name = 1`\n',
    /writes the table boxes/,
  ],
  'a table that is read by a directory that is not listed': [
    'coordinator/history/metrics/store.ts',
    "export const f = (db) => db.selectFrom('boxes')\n",
    /reads the table boxes/,
  ],
  'a table that has no owner': [
    'coordinator/boxes/notes/store.ts',
    "export const f = (db) => db.insertInto('notes')\n",
    /the table has no owner/,
  ],
  'a table whose name is a variable': [
    'coordinator/boxes/store/boxes.ts',
    'export const f = (db, table) => db.deleteFrom(table)\n',
    /names a table by a variable/,
  ],
  'a table that is read whose name is a variable': [
    'coordinator/boxes/store/boxes.ts',
    'export const f = (db, table) => db.selectFrom(table)\n',
    /names a table by a variable/,
  ],
  'a write that does not notify feeds': [
    'coordinator/boxes/store/jobs.ts',
    "export function f(trx) {\n  recordRowChange(trx)\n}\nexport const g = (trx) => trx.updateTable('jobs')\n",
    /^coordinator\/boxes\/store\/jobs\.ts:4: g writes jobs without recordRowChange\(\) \(feeds would miss/,
  ],
  'a statement in SQL text that does not notify feeds': [
    'coordinator/boxes/store/boxes.ts',
    'export const f = sql`update boxes set tier = 1`\n',
    /f writes boxes without recordRowChange/,
  ],
  'a query outside a store': [
    'coordinator/audit/service.ts',
    "export const f = (db) => db.selectFrom('audit_log')\n",
    /^coordinator\/audit\/service\.ts:1: has a query \(SQL is in stores/,
  ],
  'a table in a list of tables': [
    'coordinator/audit/store.ts',
    "export const f = (db) => db.selectFrom(['audit_log', 'boxes'])\n",
    /reads the table boxes/,
  ],
  'a table that is joined': [
    'coordinator/audit/store.ts',
    "export const f = (query) => query.rightJoin('boxes', 'a', 'b')\n",
    /reads the table boxes/,
  ],
  'a table that is read in SQL text': [
    'coordinator/audit/store.ts',
    'export const f = sql<Row>`select id from boxes`\n',
    /reads the table boxes/,
  ],
  'a table that a statement in SQL text writes': [
    'coordinator/audit/store.ts',
    'export const f = sql`with old as (select 1) delete from boxes`\n',
    /writes the table boxes/,
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
  'a barrel': ['shared/api/index.ts', "export { x } from './boxes.ts'\n", /barrel/],
  'a file that exports all of another one': [
    'coordinator/audit/service.ts',
    "export * from './store.ts'\n",
    /exports all of another file/,
  ],
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

t.test('reports nothing for files that follow the rules', async (t) => {
  const service =
    "import type { Updateable } from 'kysely'\nimport { x } from './store.ts'\nimport { z } from '../../../shared/x.ts'\n"
  const store = [
    "import { sql } from 'kysely'",
    "declare module '../../db/schema.ts' {",
    '  interface Tables {',
    '    notes: NoteRow',
    '  }',
    '}',
    "export const f = (db) => db.insertInto('notes')",
  ]
  const notes = { 'service.ts': service, 'store.ts': store.join('\n') }
  t.same(findViolations(t.testdir({ coordinator: { boxes: { notes } } })), [])
})

t.test('reports two directories of which files deep inside import each other', async (t) => {
  const dir = t.testdir({
    coordinator: {
      boxes: {
        a: { x: { 'f.ts': "import '../../b/g.ts'\n" }, 'h.ts': 'export const h = 1\n' },
        b: { 'g.ts': 'export const g = 1\n', y: { 'i.ts': "import '../../a/h.ts'\n" } },
      },
    },
  })
  t.match(findViolations(dir), [
    /^coordinator\/boxes\/a\/x\/f\.ts:1: imports coordinator\/boxes\/b\/g\.ts, and /,
  ])
})

t.test('reports directories that import each other, except a directory and those inside it', async (t) => {
  const dir = t.testdir({
    coordinator: {
      boxes: {
        'a.ts': "import './lifecycle/b.ts'\n",
        lifecycle: { 'b.ts': "import '../c.ts'\nimport type { D } from '../snapshots/d.ts'\n" },
        snapshots: { 'd.ts': 'export type D = 1\n', 'e.ts': "import '../lifecycle/f.ts'\n" },
      },
    },
  })
  t.same(findViolations(dir), [
    'coordinator/boxes/lifecycle/b.ts:2: imports coordinator/boxes/snapshots/d.ts, and coordinator/boxes/snapshots/e.ts imports coordinator/boxes/lifecycle/f.ts (two directories that import each other cannot be read one at a time)',
  ])
})

t.test('reports the shortest import cycle, also of type-only imports, in every component', async (t) => {
  const dir = t.testdir({
    agent: {
      'a.ts': "import { b } from './b.ts'\n",
      'b.ts': "import { c } from './c.ts'\n",
      'c.ts': "import { a } from './a.ts'\nimport type { D } from './exec/d.ts'\n",
      exec: { 'd.ts': "export type { C } from '../c.ts'\n" },
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
    `agent/c.ts:2: imports agent/exec/d.ts, which imports agent/c.ts ${reason}`,
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
