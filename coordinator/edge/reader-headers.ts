// What the agent needs to know about the client of a request that reads files.
import { READER_HEADER } from '../../shared/protocol.ts'
import { rankLevel } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'

/** The headers for the agent: a client that may not run commands cannot read the files with credentials. */
export const createReaderHeaders = ({ access }: Actor): Record<string, string> =>
  rankLevel(access, 'boxes') < rankLevel({ boxes: 'run' }, 'boxes') ? { [READER_HEADER]: '1' } : {}
