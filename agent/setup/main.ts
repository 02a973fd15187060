// Entry point of setup.mjs, which install.sh runs: install, start, uninstall and status.
import { dirname } from 'node:path'
import { createProxySelector } from '../tunnel/proxy.ts'
import { readAgentEnv } from './agent-env.ts'
import { install } from './install.ts'
import { readRecord } from './install-record.ts'
import { getLayout } from './layout.ts'
import { readOptions } from './options.ts'
import { createService } from './services/choose-service.ts'
import { SetupError } from './setup-error.ts'
import { startAndWait } from './start-and-wait.ts'
import { printStatus } from './status.ts'
import { uninstall } from './uninstall.ts'
import { findUser } from './user.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** setup.mjs is in `<prefix>/versions/<build>`. */
const defaultPrefix = dirname(dirname(import.meta.dirname))

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), defaultPrefix)
  // The processes that this one starts do not get the token.
  const env = { ...process.env }
  delete process.env.BOXWOOD_TOKEN
  switch (options.command) {
    case 'install':
      return install(options, {
        selectProxy: await createProxySelector(),
        env,
        print,
        signal: createSignal(),
      })
    case 'start':
      return start(options.prefix, createSignal())
    case 'uninstall':
      return uninstall(options.prefix, print)
    case 'status':
      if (!(await printStatus(options.prefix, print))) process.exitCode = 1
  }
}

async function start(prefix: string, signal: AbortSignal): Promise<void> {
  const layout = getLayout(prefix)
  const record = await readRecord(layout.recordFile)
  const env = await readAgentEnv(layout.envFile)
  if (record === null || env === null)
    throw new SetupError(`There is no agent in ${prefix}. Pass its directory with --prefix.`)
  const service = createService(record.service, layout, await findUser(record.user))
  await startAndWait(service, layout, { url: env.BOXWOOD_URL ?? 'the coordinator', signal })
  print(`This machine is the box ${record.name}, and is connected.`)
}

/** The steps that were made are undone before the process exits. */
function createSignal(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(name, () => controller.abort(new SetupError(`Interrupted by ${name}.`)))
  return controller.signal
}

main().catch((error: unknown) => {
  const text = error instanceof SetupError ? error.message : error instanceof Error ? error.stack : error
  process.stderr.write(`boxwood: ${text}\n`)
  process.exitCode = 1
})
