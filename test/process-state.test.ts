// What the coordinator keeps in its memory is listed, with why several coordinators may each have their own.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findState, findStateProblems, readCoordinatorSources } from './support/find-process-state.ts'
import { PROJECT_DIR } from './support/project.ts'

const sources = readCoordinatorSources(PROJECT_DIR)

t.test('the state of the coordinator is listed', async (t) => {
  t.same(findStateProblems(sources), [])
})

t.test('each topic of notifications is in the README of db', async (t) => {
  const readme = readFileSync(join(PROJECT_DIR, 'coordinator/db/README.md'), 'utf8')
  const paths = sources.filter(({ text }) => /^(?:export )?const \w+ = defineTopic/m.test(text))
  t.ok(paths.length > 10)
  for (const { path } of paths) t.match(readme, `\`${path}\``)
})

const found: Record<string, [text: string, names: string[]]> = {
  'a variable of a module': ['const seen = new Set<string>()\n', ['seen']],
  'a constant of a module': ["const METHODS = new Set(['GET'])\nconst NONE = new Map()\n", []],
  'fields of a class': [
    'export class A {\n  readonly #byBox = new Map<string, () => void>()\n  rates\n\n  constructor() {\n    this.rates = createTokenBuckets(clock, RATE)\n  }\n}\n',
    ['#byBox', 'rates'],
  ],
  'a variable of a service': [
    'export function createA() {\n  let unwritten = new Map<string, number>()\n  const limits = { fast: pLimit(1) }\n  return {}\n}\n',
    ['unwritten', 'limits'],
  ],
  'a service that is an arrow function': [
    'export const createA = () => {\n  const byKey = new WeakMap()\n}\n',
    ['byKey'],
  ],
  'a variable of a function of a service': [
    'function createA() {\n  return (ids) => {\n    const unique = new Set(ids)\n  }\n}\n',
    [],
  ],
  'a variable of a function that ends': ['function countBoxes() {\n  const counts = new Map()\n}\n', []],
  'a function that returns a new collection': ['const newSlice = () => ({ ids: new Set() })\n', []],
}

t.test('what is state', async (t) => {
  for (const [name, [text, names]] of Object.entries(found))
    t.same(
      findState({ path: 'a.ts', text }).map((state) => state.name),
      names,
      name,
    )
})

t.test('problems', async (t) => {
  const text = '// A.\nconst seen = new Set<string>()\nlet count = 0\n'
  const find = (...listed: string[]) => findStateProblems([{ path: 'jobs/a.ts', text }], listed).join()
  t.match(find(), /^coordinator\/jobs\/a\.ts:2: seen is in the memory/)
  t.equal(find('jobs/a.ts seen'), '')
  t.equal(find('jobs/a.ts seen', 'jobs/a.ts count'), '', 'counters can be listed')
  t.match(find('jobs/a.ts seen', 'jobs/a.ts other'), /lists jobs\/a\.ts other, which does not exist/)
  t.match(find('jobs/a.ts seen', 'jobs/b.ts seen'), /lists jobs\/b\.ts seen, which does not exist/)
  t.match(find('jobs/a.ts seen', 'jobs/a.ts seen'), /twice/)
})
