// Uninstalls the agent of an enrolled machine whose box has been deleted.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import type { JsonRouter } from '../requests/json-routes.ts'

/** Starts the uninstallation, which stops this agent. No effect while one runs. */
export type Uninstall = () => void

/**
 * @param prefix the directory of the installation
 * @param removeCredentials removes the cloud credentials, which the installer does not know, from the home directory
 */
export function createUninstall(
  prefix: string,
  log: Pick<Logger, 'info' | 'error'>,
  removeCredentials: () => Promise<unknown>,
): Uninstall {
  let isRunning = false

  function start(): void {
    const current = join(prefix, 'current')
    const args = [join(current, 'setup.mjs'), 'uninstall']
    const child = spawn(join(current, 'node'), args, { cwd: '/', detached: true, stdio: 'ignore' })
    const onFailure = (err: unknown) => {
      isRunning = false
      log.error({ err, prefix }, 'failed to uninstall the agent; will retry at the next connection')
    }
    child.once('error', onFailure)
    child.once('exit', (code, signal) => {
      if (code !== 0) onFailure(new Error(`the uninstallation exited with ${code ?? signal}`))
    })
    child.unref()
  }

  return () => {
    if (isRunning) return
    isRunning = true
    log.info({ prefix }, 'the box of this machine has been deleted; uninstalling the agent')
    void removeCredentials()
      .catch((err: unknown) => log.error({ err }, 'failed to remove the cloud credentials of the box'))
      .then(start)
  }
}

/** @param uninstall null: this agent does not belong to an enrolled machine */
export function uninstallRoutes(router: JsonRouter, uninstall: Uninstall | null): void {
  router.add('POST', '/uninstall', ({ afterResponse }) => {
    if (uninstall === null) throw new ApiError('not_found', 'This agent was not installed on a machine.')
    afterResponse(uninstall)
  })
}
