// docs/protocol.md lists the routes of the agent, and no others.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from './support/project.ts'

const readText = (path: string): string => readFileSync(join(PROJECT_DIR, path), 'utf8')

t.test('docs/protocol.md lists the routes of the agent', async (t) => {
  const registrations = globSync('agent/**/*.ts', { cwd: PROJECT_DIR }).flatMap((file) => [
    ...readText(file).matchAll(/\brouter\.add\(\s*'([A-Z]+)', '([^']+)'/g),
  ])
  const routes = registrations.map(([, method, path = '']) => `${method} ${path.replace(/:\w+/g, '{}')}`)
  const [, section = ''] = readText('docs/protocol.md').split('### Requests to the agent\n')
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  // The first cell has the routes of the row.
  const cells = rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([A-Z]+ [^`]+)`/g)])
  const listed = cells.map(([, route = '']) => route.replace(/\{\w+\}/g, '{}'))
  t.ok(routes.length > 30, `${routes.length} routes`)
  t.same(listed.sort(), routes.sort())
})
