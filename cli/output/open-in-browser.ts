// Opens a URL in a browser with xdg-open.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { findOnPath } from '../../shared/command-name.ts'

export const hasDisplay = (): boolean =>
  Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY) &&
  findOnPath('xdg-open', process.env.PATH) !== null

/** The time limit of the command. On some systems xdg-open runs until the browser exits. */
const OPEN_TIMEOUT_MS = 2_000

/** Returns false when xdg-open has failed. */
export async function openInBrowser(url: string): Promise<boolean> {
  const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true })
  try {
    const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(OPEN_TIMEOUT_MS) })
    return code === 0
  } catch (error) {
    child.unref()
    return error instanceof Error && error.name === 'AbortError'
  }
}
