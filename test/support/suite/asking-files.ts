// Finds the test files that ask for optional programs: their imports reach requires.ts.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const REQUIRES = 'test/support/requires.ts'

/** Imports of values and import() of relative files. Formatted code starts a statement at the start of a line. */
const IMPORTS = [
  /^(?:import|export)\s+(?!type\b)[^'"`;]*?\bfrom\s*'(\.[^']+)'/gm,
  /^import\s*'(\.[^']+)'/gm,
  /\bimport\(\s*'(\.[^']+)'/g,
]

/** The imported files below test/, by absolute path. */
const importsOfFiles = new Map<string, string[]>()

/** The relative specifiers that the text imports, without type-only imports. */
export const listRelativeImports = (text: string): string[] =>
  IMPORTS.flatMap((form) => [...text.matchAll(form)].flatMap(([, specifier]) => specifier ?? []))

/** Whether the file, a path relative to the project, is requires.ts or imports it, also through other files below test/. */
export function asksForPrograms(projectDir: string, file: string): boolean {
  const target = join(projectDir, REQUIRES)
  const visited = new Set([join(projectDir, file)])
  for (const path of visited) {
    if (path === target) return true
    for (const imported of listImports(projectDir, path)) visited.add(imported)
  }
  return false
}

function listImports(projectDir: string, path: string): string[] {
  const known = importsOfFiles.get(path)
  if (known !== undefined) return known
  // A text of a test may contain the import of a file that does not exist.
  const imports = listRelativeImports(existsSync(path) ? readFileSync(path, 'utf8') : '')
    .map((specifier) => join(dirname(path), specifier))
    .filter((imported) => imported.startsWith(join(projectDir, 'test/')) && imported.endsWith('.ts'))
  importsOfFiles.set(path, imports)
  return imports
}
