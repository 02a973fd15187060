// A request of a viewer, until its response is closed.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BoxRow } from '../../db/schema.ts'
import type { ServedShare } from '../../port-shares/types.ts'
import type { ViewerDecision, ViewerRequest } from './types.ts'

export type Exchange = { request: IncomingMessage; response: ServerResponse; viewer: ViewerRequest }

export type Found = { share: ServedShare; box: BoxRow }

export type Served = Extract<ViewerDecision, { type: 'serve' }>
