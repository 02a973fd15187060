// Prints a URL, and opens it in a browser where that is possible.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { findOnPath } from '../../shared/command-name.ts'
import { print, printMessage } from './print.ts'

/** Without a display, and without xdg-open, only prints the URL. */
export async function openUrl(url: string): Promise<void> {
  print(url)
  if (hasDisplay() && !(await openInBrowser(url))) printMessage('xdg-open failed. Open the URL in a browser.')
}

const hasDisplay = (): boolean =>
  Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY) &&
  findOnPath('xdg-open', process.env.PATH) !== null

/** The time limit of the command. On some systems xdg-open runs until the browser exits. */
const OPEN_TIMEOUT_MS = 2_000

/** Returns false when xdg-open has failed. */
async function openInBrowser(url: string): Promise<boolean> {
  const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true })
  try {
    const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(OPEN_TIMEOUT_MS) })
    return code === 0
  } catch (error) {
    child.unref()
    return error instanceof Error && error.name === 'AbortError'
  }
}
