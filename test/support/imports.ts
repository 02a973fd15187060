// Which file may import which, and why. `npm run check` runs it: prints each import that breaks a rule, exits with 1.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, matchesGlob, relative, resolve } from 'node:path'

type Rule = {
  /** Globs of the files it binds, from the project's folder, and those of them it does not. */
  files: string[]
  except?: string[]
  reason: string
  /** Whether `file` may import `target`: a package's name, or a file of the project. */
  allows(target: string, file: string, isType: boolean): boolean
}

const within = (target: string, ...folders: string[]): boolean =>
  folders.some((folder) => target.startsWith(`${folder}/`))
const isPackage = (target: string): boolean => !target.endsWith('.ts') && !target.endsWith('.json')
/** `@scope/name/part` → `@scope/name`. */
const packageOf = (target: string): string => /^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target

const RULES: Rule[] = [
  {
    files: ['shared/**'],
    reason: 'shared is the contract that every side reads: zod, random ids, and nothing that does I/O',
    except: ['shared/websocket-duplex.ts'],
    allows: (target) =>
      isPackage(target) ? ['zod', 'node:crypto'].includes(target) : within(target, 'shared'),
  },
  {
    files: ['shared/websocket-duplex.ts'],
    reason:
      'the pipe under the tunnel is alike on both ends: it is a stream of Node’s, and needs no other package',
    allows: (target) => (isPackage(target) ? target === 'node:stream' : within(target, 'shared')),
  },
  ...['agent', 'coordinator', 'cli'].map((side) => ({
    files: [`${side}/**`],
    reason: `${side} imports shared and itself: the sides meet over the wire only, and are shipped apart`,
    allows: (target: string) => isPackage(target) || within(target, 'shared', side),
  })),
  {
    files: ['coordinator/edge/**'],
    reason: 'the edge has no SQL: it must work the same on a replica that asks another for everything',
    // A row's type is only its shape.
    allows: (target, _, isType) =>
      (isType && target === 'coordinator/db/schema.ts') ||
      (packageOf(target) !== 'kysely' && !within(target, 'coordinator/db')),
  },
  {
    files: ['agent/**', 'coordinator/**', 'cli/**', 'shared/**'],
    reason: 'a store belongs to its folder: anyone else goes through the service, where the rules are',
    allows: (target, file) => basename(target) !== 'store.ts' || dirname(target) === dirname(file),
  },
  {
    files: ['agent/**', 'coordinator/**', 'cli/**', 'shared/**'],
    except: ['coordinator/db/**'],
    reason: 'only coordinator/db knows which database it is',
    allows: (target) => !['node:sqlite', 'pg', 'better-sqlite3'].includes(packageOf(target)),
  },
  {
    files: ['agent/**', 'cli/**', 'shared/**'],
    reason: 'only the coordinator has a database',
    allows: (target) => packageOf(target) !== 'kysely',
  },
]

const FOLDERS = ['shared', 'agent', 'coordinator', 'cli', 'test', 'bench']
/** From a package that has both queries and drivers, stores may take the queries only. */
const DRIVERS = /\b(Sqlite|Postgres|Mysql|Mssql)(Dialect|Driver|Adapter|Introspector|QueryCompiler)\b/

/** Each as `file:line: what (why)`. `root` is the project's folder. */
export function findViolations(root: string): string[] {
  return FOLDERS.flatMap((folder) => sources(join(root, folder))).flatMap((path) =>
    check(relative(root, path), readFileSync(path, 'utf8'), root),
  )
}

function sources(folder: string): string[] {
  return list(folder)
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\/(node_modules|fixtures)\//.test(path.slice(folder.length)))
    .sort()
}

function list(folder: string) {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

function check(file: string, text: string, root: string): string[] {
  const found: string[] = []
  const tell = (offset: number, what: string, reason: string) =>
    found.push(`${file}:${text.slice(0, offset).split('\n').length}: ${what} (${reason})`)

  if (/^index\.[cm]?[jt]sx?$/.test(basename(file)))
    tell(0, 'is a barrel', 'an import names the file that has the thing')
  const isSide = /^(shared|agent|coordinator|cli)\//.test(file)
  for (const { offset, specifier, statement } of importsOf(text)) {
    const target = specifier.startsWith('.')
      ? relative(root, resolve(root, dirname(file), specifier))
      : specifier
    for (const rule of RULES) {
      if (!rule.files.some((glob) => matchesGlob(file, glob))) continue
      if (rule.except?.some((glob) => matchesGlob(file, glob))) continue
      if (!rule.allows(target, file, /^import type\b/.test(statement)))
        tell(offset, `imports ${target}`, rule.reason)
    }
    if (isSide && specifier === 'kysely' && DRIVERS.test(statement) && !within(file, 'coordinator/db'))
      tell(offset, 'imports a dialect of kysely', 'only coordinator/db knows which database it is')
  }
  for (const match of text.matchAll(/^export default\b|^export \{[^}]*\bas default\b/gm))
    tell(match.index, 'has a default export', 'a name is the same wherever it is used')
  return found
}

type Import = { offset: number; specifier: string; statement: string }

/** Statements begin a line and import() has a literal, as the formatter leaves them; types count too. */
function importsOf(text: string): Import[] {
  const forms = [
    /^(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm,
    /^import\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ]
  return forms.flatMap((form) =>
    [...text.matchAll(form)].map((match) => ({
      offset: match.index,
      specifier: match[1] ?? '',
      statement: match[0],
    })),
  )
}

if (import.meta.main) {
  const violations = findViolations(resolve(import.meta.dirname, '../..'))
  for (const violation of violations) console.error(violation)
  if (violations.length > 0) process.exitCode = 1
}
