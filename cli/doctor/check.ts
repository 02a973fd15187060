// The result of one check of `box doctor`.

export type Check = {
  name: string
  status: 'ok' | 'warn' | 'fail'
  /** What was found, without a full stop. */
  message: string
  /** What to do, as a sentence; null when nothing is to be done. With status ok: what could be done. */
  advice: string | null
}

export const ok = (name: string, message: string): Check => ({ name, status: 'ok', message, advice: null })
export const warn = (name: string, message: string, advice: string): Check => ({
  name,
  status: 'warn',
  message,
  advice,
})
export const fail = (name: string, message: string, advice: string): Check => ({
  name,
  status: 'fail',
  message,
  advice,
})
