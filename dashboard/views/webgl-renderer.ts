// Draws the terminal with WebGL. The addon is a file of its own, which is loaded when WebGL is chosen.
import type { Terminal } from '@xterm/xterm'

export type WebglRenderer = {
  /** The emulator draws with elements while WebGL is off, not loaded or not available. */
  setEnabled(isEnabled: boolean): Promise<void>
}

/** @param onProblem null: the last change was successful */
export function createWebglRenderer(
  terminal: Terminal,
  onProblem: (problem: string | null) => void,
): WebglRenderer {
  let isWanted = false
  let active: { dispose(): void } | null = null

  function turnOff(): void {
    active?.dispose()
    active = null
  }

  return {
    async setEnabled(isEnabled) {
      isWanted = isEnabled
      onProblem(null)
      if (!isEnabled) return turnOff()
      try {
        const { WebglAddon } = await import('@xterm/addon-webgl')
        if (!isWanted || active !== null) return
        const addon = new WebglAddon()
        active = addon
        addon.onContextLoss(() => {
          turnOff()
          onProblem('The browser has ended WebGL. The terminal is drawn without it.')
        })
        terminal.loadAddon(addon)
      } catch {
        turnOff()
        onProblem('WebGL is not available. The terminal is drawn without it.')
      }
    },
  }
}
