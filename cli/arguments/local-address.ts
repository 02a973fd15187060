// Reads the port of an address that a server prints when it starts, such as http://localhost:3000/.

const ADDRESS =
  /^(?:(?:https?|wss?):\/\/)?(?:localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]):(\d+)(?:\/.*)?$/i

/** Returns the port as typed; null: not an address of a server on the same machine with a port. */
export const readLocalAddress = (text: string): string | null => ADDRESS.exec(text)?.[1] ?? null
