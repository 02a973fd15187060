// Checks the project's import rules.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, matchesGlob, relative, resolve } from 'node:path'
import { findRoomProblems, findTwoWayImports, ROOMS } from './rooms.ts'
import { findSilentWrites } from './row-notifications.ts'
import { findTableProblems, isStore } from './table-access.ts'

type Rule = {
  /** Globs of the files that the rule applies to, relative to the project directory; `except` lists exceptions. */
  files: string[]
  except?: string[]
  reason: string
  /** Whether `file` may import `target`: the name of a package, or a file of the project. */
  allows(target: string, file: string, isType: boolean): boolean
}

const COMPONENTS = ['shared', 'agent', 'coordinator', 'cli', 'dashboard', 'client', 'mcp']
const CHECKED_DIRS = [...COMPONENTS, 'test', 'bench']

const isInside = (target: string, ...dirs: string[]): boolean =>
  dirs.some((dir) => target.startsWith(`${dir}/`))
const isPackage = (target: string): boolean => !/\.(tsx?|json)$/.test(target)
/** `@scope/name/path` → `@scope/name`. */
const packageName = (target: string): string => /^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target

const BROWSER_PACKAGES = [
  'preact',
  '@preact/signals',
  'eventsource-parser',
  'uplot',
  '@xterm/xterm',
  '@xterm/addon-fit',
  '@xterm/addon-unicode11',
  '@xterm/addon-web-links',
  'lucide',
  'lowlight',
  'highlight.js',
]

const RULES: Rule[] = [
  {
    files: ['shared/**'],
    reason: 'shared is the contract between the components: it may use zod and random ids, and does no I/O',
    except: [
      'shared/websocket-duplex.ts',
      'shared/tcp-over-websocket.ts',
      'shared/join-connections.ts',
      'shared/when-read.ts',
      'shared/command-name.ts',
      'shared/api-key-checksum.ts',
      'shared/foreign-directory.ts',
    ],
    allows: (target) =>
      isPackage(target) ? ['zod', 'zod/v4/core', 'node:crypto'].includes(target) : isInside(target, 'shared'),
  },
  {
    files: [
      'shared/websocket-duplex.ts',
      'shared/tcp-over-websocket.ts',
      'shared/join-connections.ts',
      'shared/when-read.ts',
    ],
    reason: 'all programs share these streams: they may use node:stream and no other package',
    allows: (target) => (isPackage(target) ? target === 'node:stream' : isInside(target, 'shared')),
  },
  {
    files: ['shared/api-key-checksum.ts'],
    reason: 'the checksum of API keys is the CRC-32 of node:zlib: the file may use no other package',
    allows: (target) => target === 'node:zlib',
  },
  {
    files: ['shared/command-name.ts'],
    reason: 'coordinator and cli share this lookup on the PATH: it may use node:fs and no other package',
    allows: (target) => (isPackage(target) ? target === 'node:fs' : isInside(target, 'shared')),
  },
  {
    files: ['shared/foreign-directory.ts'],
    reason: 'asks the file system who controls a data directory, for the coordinator and the box command',
    allows: (target) =>
      isPackage(target) ? ['node:fs', 'node:path'].includes(target) : isInside(target, 'shared'),
  },
  ...['agent', 'coordinator'].map((component) => ({
    files: [`${component}/**`],
    except: ['coordinator/mcp/**'],
    reason: `${component} may import itself and shared: the components communicate over the wire and are deployed separately`,
    allows: (target: string) => isPackage(target) || isInside(target, 'shared', component),
  })),
  {
    files: ['cli/**'],
    reason:
      'cli may import itself, shared, the client, and the tools of box mcp: the components communicate over the wire and are deployed separately',
    allows: (target) => isPackage(target) || isInside(target, 'shared', 'cli', 'client', 'mcp'),
  },
  {
    files: ['coordinator/mcp/**'],
    reason:
      'the tools of box mcp over HTTP: coordinator/mcp may import what the coordinator may, the client, and mcp',
    allows: (target) => isPackage(target) || isInside(target, 'shared', 'coordinator', 'client', 'mcp'),
  },
  {
    files: ['mcp/**'],
    reason: 'the tools work with any coordinator, through the client: mcp may import itself and the client',
    allows: (target) => isPackage(target) || isInside(target, 'mcp', 'client'),
  },
  {
    files: ['client/**'],
    reason:
      'programs of others import the client, in every runtime: it may import itself, the types of shared, and a parser that its build contains',
    allows: (target, _, isType) =>
      isPackage(target)
        ? target === 'eventsource-parser'
        : isInside(target, 'client') || (isType && isInside(target, 'shared')),
  },
  {
    files: ['dashboard/**'],
    reason:
      'the dashboard runs in browsers: it may import itself, the client, packages for browsers, the types of shared, whose code it does not contain, the mark and the version',
    allows: (target, _, isType) =>
      isPackage(target)
        ? BROWSER_PACKAGES.includes(packageName(target))
        : isInside(target, 'dashboard', 'client') ||
          ['shared/mark.ts', 'shared/version.ts'].includes(target) ||
          (isType && isInside(target, 'shared')),
  },
  {
    files: ['dashboard/{api,data}/**'],
    reason:
      'dashboard/api is the access to the API and becomes the client package, dashboard/data what the server has sent: they have no views, and the API no data',
    allows: (target, file) =>
      !isInside(target, 'dashboard') ||
      isInside(target, 'dashboard/api') ||
      (isInside(file, 'dashboard/data') && isInside(target, 'dashboard/data')),
  },
  {
    files: ['coordinator/edge/**'],
    reason:
      'the edge uses no SQL, so that it also works on a replica that forwards everything to another one',
    // The type of a row describes only its shape.
    allows: (target, _, isType) =>
      (isType && target === 'coordinator/db/schema.ts') ||
      (packageName(target) !== 'kysely' && !isInside(target, 'coordinator/db')),
  },
  {
    files: COMPONENTS.map((component) => `${component}/**`),
    reason:
      'a store is private to its directory, and a directory `store` to its room: other code goes through the service, which enforces the rules',
    allows: (target, file) => {
      if (/\/store\/[^/]+$/.test(target)) return isInside(file, dirname(dirname(target)))
      return !isStore(target) || dirname(target) === dirname(file)
    },
  },
  {
    files: ['coordinator/**'],
    // The rule of the edge above is stricter.
    except: ['coordinator/db/**', 'coordinator/edge/**'],
    reason: 'SQL is in stores, whose tables have one owner',
    allows: (target, file, isType) => isType || target !== 'kysely' || isStore(file),
  },
  {
    files: COMPONENTS.map((component) => `${component}/**`),
    except: ['coordinator/db/**'],
    reason: 'only coordinator/db knows which database is used',
    allows: (target) => !['node:sqlite', 'pg', 'better-sqlite3'].includes(packageName(target)),
  },
  {
    files: ['agent/**', 'cli/**', 'dashboard/**', 'shared/**'],
    reason: 'only the coordinator has a database',
    allows: (target) => packageName(target) !== 'kysely',
  },
]

/** Exports of kysely that depend on the database. Stores may use the others. */
const DIALECT_EXPORTS = /\b(Sqlite|Postgres|Mysql|Mssql)(Dialect|Driver|Adapter|Introspector|QueryCompiler)\b/

type Source = { file: string; text: string; imports: Import[] }

type Import = {
  /** The position of the statement in the text. */
  offset: number
  specifier: string
  /** The name of a package, or a file relative to the project directory. */
  target: string
  statement: string
}

/** Returns the violations, each as `file:line: problem (reason)`. */
export function findViolations(projectDir: string): string[] {
  const sources = CHECKED_DIRS.flatMap((dir) => listSources(join(projectDir, dir))).map((path) =>
    readSource(path, projectDir),
  )
  const componentSources = sources.filter(({ file }) => isInside(file, ...COMPONENTS))
  const coordinatorSources = sources.filter(({ file }) => isInside(file, 'coordinator'))
  return [
    ...sources.flatMap(checkSource),
    ...findImportCycles(componentSources),
    ...componentSources.flatMap(checkRoom),
    ...checkTwoWayImports(componentSources),
    ...[...findTableProblems(coordinatorSources), ...findSilentWrites(coordinatorSources)].map(
      ({ file, text, offset, problem, reason }) => formatViolation(file, text, offset, problem, reason),
    ),
  ]
}

function listSources(dir: string): string[] {
  return listEntries(dir)
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\/(node_modules|fixtures)\//.test(path.slice(dir.length)))
    .sort()
}

function listEntries(dir: string) {
  try {
    return readdirSync(dir, { recursive: true, withFileTypes: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

function readSource(path: string, projectDir: string): Source {
  const text = readFileSync(path, 'utf8')
  const resolveSpecifier = (specifier: string) =>
    specifier.startsWith('.') ? relative(projectDir, resolve(dirname(path), specifier)) : specifier
  return { file: relative(projectDir, path), text, imports: parseImports(text, resolveSpecifier) }
}

function checkSource({ file, text, imports }: Source): string[] {
  const violations: string[] = []
  const report = (offset: number, problem: string, reason: string) =>
    violations.push(formatViolation(file, text, offset, problem, reason))

  if (/^index\.[cm]?[jt]sx?$/.test(basename(file)))
    report(0, 'is a barrel', 'imports name the file that defines the import')
  for (const match of text.matchAll(/^export \*/gm))
    report(match.index, 'exports all of another file', 'imports name the file that defines the import')
  for (const { offset, specifier, target, statement } of imports) {
    for (const rule of RULES) {
      if (!rule.files.some((glob) => matchesGlob(file, glob))) continue
      if (rule.except?.some((glob) => matchesGlob(file, glob))) continue
      if (!rule.allows(target, file, /^import type\b/.test(statement)))
        report(offset, `imports ${target}`, rule.reason)
    }
    const isDialect = specifier === 'kysely' && DIALECT_EXPORTS.test(statement)
    if (isDialect && isInside(file, ...COMPONENTS) && !isInside(file, 'coordinator/db'))
      report(offset, 'imports a dialect of kysely', 'only coordinator/db knows which database is used')
  }
  for (const match of text.matchAll(/^export default\b|^export \{[^}]*\bas default\b/gm))
    report(match.index, 'has a default export', 'a named export has the same name in every file')
  return violations
}

/**
 * Finds files that import each other in a circle, by any form of import. Reports the shortest cycles, each file at most
 * once: a cycle that shares a file with a shorter one appears when the shorter one is resolved.
 */
function findImportCycles(sources: Source[]): string[] {
  const graph = new Map(sources.map(({ file, imports }) => [file, imports.map(({ target }) => target)]))
  const cycles = sources
    .map((source) => ({ source, cycle: findShortestCycle(source.file, graph) }))
    .sort((a, b) => a.cycle.length - b.cycle.length)
  const reported = new Set<string>()
  const violations: string[] = []
  for (const { source, cycle } of cycles) {
    if (cycle.length === 0 || cycle.some((file) => reported.has(file))) continue
    for (const file of cycle) reported.add(file)
    const [next] = cycle
    const offset = source.imports.find(({ target }) => target === next)?.offset ?? 0
    const problem = `imports ${cycle.join(', which imports ')}`
    const reason = 'a circle of imports has no order in which to be read'
    violations.push(formatViolation(source.file, source.text, offset, problem, reason))
  }
  return violations
}

/** The files on the shortest path from `file` back to itself. The last element is `file`. Empty when there is none. */
function findShortestCycle(file: string, graph: Map<string, string[]>): string[] {
  const visited = new Set<string>()
  let paths: string[][] = [[]]
  // Breadth-first search: all paths have the same length.
  while (paths.length > 0) {
    const longer: string[][] = []
    for (const path of paths) {
      for (const target of graph.get(path.at(-1) ?? file) ?? []) {
        if (target === file) return [...path, target]
        if (visited.has(target)) continue
        visited.add(target)
        longer.push([...path, target])
      }
    }
    paths = longer
  }
  return []
}

function checkRoom({ file, text, imports }: Source): string[] {
  const problems = findRoomProblems(
    file,
    imports.map(({ target }) => target),
  )
  return problems.map(({ target, problem }) => {
    const component = file.split('/')[0] ?? ''
    const offset = imports.find((other) => other.target === target)?.offset ?? 0
    const reason = `a room of ${component} imports only rooms before it: ${ROOMS[component]?.join(', ')}`
    return formatViolation(file, text, offset, problem, reason)
  })
}

function checkTwoWayImports(sources: Source[]): string[] {
  const edges = sources.flatMap(({ file, imports }) =>
    imports
      .filter(({ target }) => isInside(target, file.split('/')[0] ?? ''))
      .map(({ target }) => ({ file, target })),
  )
  return findTwoWayImports(edges).map(({ file, target, back }) => {
    const source = sources.find((other) => other.file === file)
    const offset = source?.imports.find((other) => other.target === target)?.offset ?? 0
    const problem = `imports ${target}, and ${back.file} imports ${back.target}`
    const reason = 'two directories that import each other cannot be read one at a time'
    return formatViolation(file, source?.text ?? '', offset, problem, reason)
  })
}

function formatViolation(
  file: string,
  text: string,
  offset: number,
  problem: string,
  reason: string,
): string {
  const line = text.slice(0, offset).split('\n').length
  return `${file}:${line}: ${problem} (${reason})`
}

/** Includes type-only imports. Relies on formatted code: statements start a line, import() has a literal argument. */
function parseImports(text: string, resolveSpecifier: (specifier: string) => string): Import[] {
  const forms = [
    /^(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/gm,
    /^import\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ]
  return forms.flatMap((form) =>
    [...text.matchAll(form)].map(({ index, 0: statement, 1: specifier = '' }) => ({
      offset: index,
      specifier,
      target: resolveSpecifier(specifier),
      statement,
    })),
  )
}
