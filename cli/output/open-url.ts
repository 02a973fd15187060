// Prints a URL, and opens it in a browser where that is possible.
import { hasDisplay, openInBrowser } from './open-in-browser.ts'
import { print, printMessage } from './print.ts'

/**
 * Without a display, and without xdg-open, only prints the URL.
 * @param toArgument returns the URL that xdg-open gets instead
 */
export async function openUrl(url: string, toArgument = () => url): Promise<void> {
  print(url)
  if (hasDisplay() && !(await openInBrowser(toArgument())))
    printMessage('xdg-open failed. Open the URL in a browser.')
}
