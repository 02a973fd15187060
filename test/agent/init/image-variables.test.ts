// Variables of an image that would break the Node of the agent: it does not get them, and the commands of the box do.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR } from '../../support/project.ts'
import { waitUntil } from '../../support/wait-until.ts'

const INIT = join(PROJECT_DIR, 'agent/init/init.sh')
const OWN_LIBRARIES = join(PROJECT_DIR, 'agent/own-libraries.ts')
const VARIABLES = {
  LD_LIBRARY_PATH: '/usr/local/nvidia/lib64',
  LD_PRELOAD: '/usr/lib/libjemalloc.so.2',
  NODE_OPTIONS: '--unknown-option',
}

const pick = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => name in VARIABLES || name.startsWith('BOXWOOD_IMAGE_')),
  )

t.test('the init starts the agent without the variables of the image', async (t) => {
  const dir = t.testdir({ node: {}, state: {}, home: {}, build: {} })
  const agent = join(dir, 'build/agent.mjs')
  const output = join(dir, 'output')
  writeFileSync(agent, `env >${output}.new; mv ${output}.new ${output}; exec sleep 1000`)
  mkdirSync(join(dir, 'node/lib'))
  const init = spawn('/bin/sh', [INIT, '/bin/sh', agent], {
    stdio: 'ignore',
    detached: true,
    env: {
      PATH: process.env.PATH,
      ...VARIABLES,
      LD_PRELOAD: '',
      HOME: join(dir, 'home'),
      BOXWOOD_STATE: join(dir, 'state'),
      BOXWOOD_NODE: join(dir, 'node'),
      BOXWOOD_SETTINGS: join(dir, 'settings'),
    },
  })
  t.teardown(() => process.kill(-(init.pid ?? 0), 'SIGKILL'))
  await waitUntil('the agent has started', () => existsSync(output))
  const env = Object.fromEntries(
    readFileSync(output, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  ) as NodeJS.ProcessEnv
  t.strictSame(pick(env), {
    LD_LIBRARY_PATH: join(dir, 'node/lib'),
    BOXWOOD_IMAGE_LD_LIBRARY_PATH: VARIABLES.LD_LIBRARY_PATH,
    BOXWOOD_IMAGE_LD_PRELOAD: '',
    BOXWOOD_IMAGE_NODE_OPTIONS: VARIABLES.NODE_OPTIONS,
  })
})

t.test('the agent gives its commands the variables of the image', async (t) => {
  const script = `import { createNodeEnvironment, hideOwnLibraries } from '${OWN_LIBRARIES}'
hideOwnLibraries()
console.log(JSON.stringify([process.env, createNodeEnvironment()]))`
  const image = Object.entries(VARIABLES).map(([name, value]) => [`BOXWOOD_IMAGE_${name}`, value])
  const env = { ...Object.fromEntries(image), BOXWOOD_LIBRARIES: '/own/lib', LD_LIBRARY_PATH: '/own/lib' }
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env })
  const [ofCommands, ofNode] = JSON.parse(output.toString()) as [NodeJS.ProcessEnv, NodeJS.ProcessEnv]
  t.strictSame(pick(ofCommands), VARIABLES)
  t.strictSame(pick(ofNode), { LD_LIBRARY_PATH: '/own/lib' })
})
