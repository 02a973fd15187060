// Finds what the coordinator keeps in its memory, and compares it with the list in process-state.ts.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROCESS_STATE } from './process-state.ts'

type Source = {
  /** Relative to `coordinator/`. */
  path: string
  text: string
}
export type FoundState = { path: string; name: string; line: number }

/** Collections, and what limits or queues. An arrow function before it returns a new one for each call. */
const MADE =
  /^(?:(?!=>).)*?(?:= |\?\? |: )(new (?:Weak)?(?:Map|Set)\b.*|(?:new (?:Slots|RateLimiter\w*)|pLimit|create(?:TokenBuckets|FairQueue|RateLimiter|BatchLoader))\(.*)/
/** Services live as long as the coordinator. Other functions end, and their variables with them. */
const SERVICE =
  /^(?:export )?(?:async )?(?:function|const) (?:(?:create|listen|register|start)[A-Z]\w*|\w+Module)\b/
const CLASS = /^(?:export )?(?:abstract )?class /
const DECLARATION = /^(?:export )?(?:async )?(?:abstract )?(?:const|let|function|class)\b/
/** Names in capitals are constants. */
const MODULE_VARIABLE = /^(?:export )?(?:const|let) ([a-z]\w*)/
const SERVICE_VARIABLE = /^ {2}(?:const|let) (\w+)/
const FIELD = /^ {2}(?:(?:private|static|readonly) )*(#?\w+)(?=[: ])|^ +this\.(#?\w+) = /
/** A collection of a module that begins with content is a constant. */
const WITH_CONTENT = /new (?:Map|Set)\b[^(]*\((?!\))/

/**
 * State is a variable of a module, a field of a class, or a variable at the top of a service: a function whose name begins with
 * create, listen, register or start, or ends with Module. Relies on formatted code.
 */
export function findState({ path, text }: Source): FoundState[] {
  let scope: RegExp | undefined
  return text.split('\n').flatMap((line, index) => {
    if (DECLARATION.test(line))
      scope = CLASS.test(line) ? FIELD : SERVICE.test(line) ? SERVICE_VARIABLE : undefined
    if (!MADE.test(line)) return []
    const ofModule = WITH_CONTENT.test(line) ? undefined : MODULE_VARIABLE.exec(line)?.[1]
    const [, field, assigned] = scope?.exec(line) ?? []
    const name = ofModule ?? field ?? assigned
    return name === undefined ? [] : [{ path, name, line: index + 1 }]
  })
}

/** Whether the file declares the variable or field. It may be a counter, or a value that is kept for later calls. */
const declares = (text: string, name: string): boolean =>
  new RegExp(`^ *(?:(?:const|let|readonly|static) )*${name}(?::[^\\n]*)?(?: =|$)`, 'm').test(text)

/** Returns the state that is not listed, and the listed state that does not exist. */
export function findStateProblems(
  sources: readonly Source[],
  listed: readonly string[] = Object.values(PROCESS_STATE).flatMap(Object.keys),
): string[] {
  const texts = new Map(sources.map(({ path, text }) => [path, text]))
  const unlisted = sources
    .flatMap(findState)
    .filter(({ path, name }) => !listed.includes(`${path} ${name}`))
    .map(
      ({ path, name, line }) =>
        `coordinator/${path}:${line}: ${name} is in the memory of one of several coordinators: list it in test/support/process-state.ts`,
    )
  const missing = listed
    .filter((entry) => {
      const [path = '', name = ''] = entry.split(' ')
      return !declares(texts.get(path) ?? '', name)
    })
    .map((entry) => `process-state.ts lists ${entry}, which does not exist`)
  const twice = listed
    .filter((entry, index) => listed.indexOf(entry) !== index)
    .map((entry) => `process-state.ts lists ${entry} twice`)
  return [...unlisted, ...missing, ...twice]
}

/** Migrations run once, and then the process has nothing of them. */
export function readCoordinatorSources(projectDir: string): Source[] {
  const dir = join(projectDir, 'coordinator')
  return globSync('**/*.ts', { cwd: dir })
    .filter((path) => !path.startsWith('db/migrations/'))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(dir, path), 'utf8') }))
}
