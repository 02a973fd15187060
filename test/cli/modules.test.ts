// The modules of the box command do not load slow libraries, because each command waits for them.
import { globSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join, resolve } from 'node:path'
import t from 'tap'

const CLI_DIR = resolve(import.meta.dirname, '../../cli')

/** zod takes 100 ms. An import of node:http loads undici, which takes 45 ms: see cli/connection/http-request.ts. */
const SLOW = ['zod', 'node:http']

// The ids of shared/ids.ts are random. The import of node:crypto loads the Web Crypto API, which takes half the time of Node's start.
t.test('box ls and box exec do not import node:crypto', async (t) => {
  const found: string[] = []
  const hooks = registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === 'node:crypto') found.push(`${context.parentURL} imports ${specifier}`)
      return nextResolve(specifier, context)
    },
  })
  for (const module of ['program', 'commands/ls', 'commands/exec'])
    await import(join(CLI_DIR, `${module}.ts`))
  hooks.deregister()
  t.same(found, [])
})

t.test('no module of box imports zod or node:http', async (t) => {
  const found: string[] = []
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (SLOW.includes(specifier)) found.push(`${context.parentURL} imports ${specifier}`)
      return nextResolve(specifier, context)
    },
  })
  const files = globSync('**/*.ts', { cwd: CLI_DIR }).filter((file) => file !== 'main.ts')
  t.ok(files.length > 200, `${files.length} files`)
  for (const file of files) await import(join(CLI_DIR, file))
  t.same(found, [])
})
