// Where the addon was not built, or is for another system, commands run all the same.
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { getSpawnAddonFileName } from '../../../shared/native-file-names.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const PROJECT = join(import.meta.dirname, '../../..')
const PROGRAM = `
  import { createSpawner } from './agent/exec/spawner.ts'
  const spawner = createSpawner()
  const ignore = () => {}
  const command = await spawner.start('exit 7', { cwd: '/', env: {}, onStdout: ignore, onStderr: ignore })
  const { exitCode } = await command.exit
  await spawner.close()
  let refusal
  try { createSpawner('native') } catch (error) { refusal = error.message }
  console.log(JSON.stringify({ kind: spawner.kind, exitCode, refusal }))
`

t.test('Node’s own way is taken', async (t) => {
  const copy = createTempDir(t, 'no-addon')
  for (const folder of ['agent', 'shared'])
    cpSync(join(PROJECT, folder), join(copy, folder), {
      recursive: true,
      filter: (path) => !/\.node$|\/run-[0-9a-f]+$/.test(path),
    })
  symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'))
  writeFileSync(join(copy, 'package.json'), '{"type":"module"}')
  writeFileSync(join(copy, 'program.ts'), PROGRAM)
  const tell = () => {
    const env = { PATH: process.env.PATH }
    return JSON.parse(execFileSync(process.execPath, [join(copy, 'program.ts')], { env, encoding: 'utf8' }))
  }
  const expected = { kind: 'node', exitCode: 7, refusal: /native spawner was not compiled/ }
  t.match(tell(), expected, 'there is none')

  const native = join(copy, 'agent/exec/native')
  const file = getSpawnAddonFileName(readFileSync(join(native, 'spawn.c')))
  writeFileSync(join(native, file), 'no shared object')
  t.match(tell(), expected, 'it cannot be loaded')
  t.same(readdirSync(native).sort(), ['run.c', file, 'spawn.c'])
})

// What a user notices of a command, once more.
process.env.BOXWOOD_SPAWNER = 'node'
await import('./run.test.ts')
await import('./output.test.ts')
await import('./terminate.test.ts')
