// Generated from the OpenAPI document by `npm run client:generate`.
import type { CallOptions, Calls } from '../http/calls.ts'
import type { Socket, SocketHandlers } from '../http/socket.ts'
import type { OpenResponse, RequestBody } from '../http/transport.ts'
import type {
  Account,
  AccountGetQuery,
  AgentAccount,
  AgentAccountsSendCodeResponse,
  AgentAccountsVerifyResponse,
  AgentsListResponse,
  AgentsUpdateRolloutResponse,
  AuditListChainQuery,
  AuditListChainResponse,
  AuditListQuery,
  AuditListResponse,
  AuditReportRequest,
  AuditReportResponse,
  AuditSinkGetResponse,
  AuditSinkSetResponse,
  AwsRolesCancelLinkResponse,
  AwsRolesCompleteLinkRequest,
  AwsRolesCompleteLinkResponse,
  AwsRolesCreateLinkRequest,
  AwsRolesCreateLinkResponse,
  AwsRolesCreateRequest,
  AwsRolesCreateResponse,
  AwsRolesDeleteResponse,
  AwsRolesListResponse,
  AwsRolesVerifyResponse,
  Billing,
  BillingListEntriesQuery,
  BillingListEntriesResponse,
  BillingReceiveStripeEventResponse,
  BillingStartCheckoutResponse,
  BoxDetail,
  BoxesCreateResponse,
  BoxesCreateTemplateResponse,
  BoxesDeleteResponse,
  BoxesForkResponse,
  BoxesGetMetricsQuery,
  BoxesGetProcessesAtQuery,
  BoxesGiveResponse,
  BoxesListCpuQuery,
  BoxesListCpuResponse,
  BoxesListQuery,
  BoxesListResponse,
  BoxesMoveResponse,
  BoxesResizeResponse,
  BoxesSuspendQuery,
  BoxesSuspendResponse,
  BoxesUpdateResponse,
  BoxesWakeResponse,
  ChangeEmail,
  ChangeEnvironmentToggles,
  Checkout,
  CloseWorkspace,
  CommandOutput,
  CommandsDeleteAllResponse,
  CommandsGetOutputQuery,
  CommandsGetResponse,
  CommandsListQuery,
  CommandsListResponse,
  CommandsRunResponse,
  ConfirmCode,
  ConversationList,
  CreateAgentAccount,
  CreateBox,
  CreateDownloadLink,
  CreateEnrollment,
  CreateEnrollmentResponse,
  CreateEnvironment,
  CreateKey,
  CreatePortShare,
  CreatePortShareResponse,
  CreateSecret,
  CreateSignInLink,
  CreateSnapshot,
  CreateTemplate,
  CreateTicketRequest,
  CreateTicketResponse,
  CreateWorkspace,
  Credit,
  CurrentSession,
  DesktopDeleteQuery,
  DesktopStart,
  DesktopStarted,
  DesktopStatus,
  DesktopStop,
  DesktopStopped,
  DesktopStopResponse,
  DirectoryCreated,
  DownloadLink,
  EnvironmentFile,
  EnvironmentRepo,
  EnvironmentsCreateResponse,
  EnvironmentsListResponse,
  EnvironmentsMakeDefaultResponse,
  EnvironmentsRemoveFileQuery,
  EnvironmentsRemoveRepoQuery,
  EnvironmentsSetFileResponse,
  EnvironmentsSetRepoResponse,
  EnvironmentsSetTogglesResponse,
  EnvironmentsSetVariableResponse,
  EnvironmentsUpdateResponse,
  ExecKilled,
  ExecList,
  ExecRequest,
  ExecStatus,
  FederationGetDocumentsResponse,
  FeedOpenQuery,
  FileList,
  FileMoved,
  FileRead,
  FileRemoved,
  FileStat,
  FilesDownloadQuery,
  FilesListQuery,
  FilesReadQuery,
  FilesRemoveQuery,
  FilesStatQuery,
  FilesUploadQuery,
  FileUploaded,
  FileWritten,
  ForkBox,
  GiveBox,
  Grantee,
  HoldWorkspace,
  ImagesDeleteQuery,
  ImagesListQuery,
  ImagesListResponse,
  ImagesPullResponse,
  InviteMember,
  IssuedCode,
  KeysCreateResponse,
  KeysGetResponse,
  KeysListQuery,
  KeysListResponse,
  KeysRotateResponse,
  KeysUpdateResponse,
  LiveProcesses,
  MachinesListTokensResponse,
  MakeDirectory,
  MembersInviteResponse,
  MembersListResponse,
  MembersUpdateResponse,
  Metrics,
  MountSecret,
  MountsCreateResponse,
  MountsListResponse,
  MoveBox,
  MoveFile,
  NameTemplate,
  OpenPortShareResponse,
  OperationsGetResponse,
  OperatorAddCreditResponse,
  OperatorCheckLedgerQuery,
  OperatorCheckLedgerResponse,
  OperatorHoldResponse,
  OperatorListWorkspacesQuery,
  OperatorListWorkspacesResponse,
  OperatorRotateKeyResponse,
  OwnerSignIn,
  PatchAgentRollout,
  PatchBox,
  PatchEnvironment,
  PatchPolicy,
  PatchSecret,
  PortShareList,
  PortShares,
  PortSharesListQuery,
  PortSharesRevokeResponse,
  ProcessesAttachQuery,
  ProcessesFollowOutputQuery,
  ProcessesGetQuery,
  ProcessesListLiveQuery,
  ProcsAt,
  PromptEvents,
  PromptInterrupted,
  PromptList,
  PromptRequest,
  PromptStatus,
  PromptsFollowAllQuery,
  PromptsInterruptAllQuery,
  PromptsInterrupted,
  PromptsListEventsQuery,
  PromptsListQuery,
  PromptsStartResponse,
  PullImage,
  PutAuditSink,
  RegionsListResponse,
  ReposListResponse,
  ReposUpdateResponse,
  RequestAgentAccountCode,
  ResizeBox,
  RestoreSnapshot,
  SecretsCreateResponse,
  SecretsGrantResponse,
  SecretsListQuery,
  SecretsListResponse,
  SecretsListUsageResponse,
  SecretsUpdateResponse,
  SessionChangeEmailResponse,
  SessionsListResponse,
  SessionUpdateUserResponse,
  SetEnvironmentVariable,
  SignedIn,
  SignIn,
  SignInLink,
  SnapshotsCreateResponse,
  SnapshotsDeleteResponse,
  SnapshotsListQuery,
  SnapshotsListResponse,
  SnapshotsMakeTemplateResponse,
  SnapshotsRemoveTemplateResponse,
  SnapshotsRestoreResponse,
  SwitchWorkspace,
  TeamGetStatusResponse,
  TerminalKilled,
  TerminalList,
  TerminalStart,
  TerminalStarted,
  TerminalsAttachQuery,
  UpdateKey,
  UpdateMember,
  UpdateUser,
  UpdateWorkspace,
  UpgradedEnvironment,
  UsageGetQuery,
  UsageGetResponse,
  WorkspaceCloseResponse,
  WorkspaceGetResponse,
  WorkspacePolicy,
  WorkspaceReopenResponse,
  WorkspacesCreateResponse,
  WorkspaceUpdateResponse,
  WriteFile,
} from './types.ts'

const createAccount = ({ json }: Calls) => ({
  /** Get the account. */
  get: (query?: AccountGetQuery, options?: CallOptions): Promise<Account> =>
    json('GET', '/api/v1/me', { query }, options),
})

const createAgentAccounts = ({ json }: Calls) => ({
  /** Create an account for an agent. */
  create: (body: CreateAgentAccount, options?: CallOptions): Promise<AgentAccount> =>
    json('POST', '/api/v1/agent-accounts', { body }, options),
  /** Send another code for an agent account. */
  sendCode: (body: RequestAgentAccountCode, options?: CallOptions): Promise<AgentAccountsSendCodeResponse> =>
    json('POST', '/api/v1/agent-accounts/code', { body }, options),
  /** Confirm the code of an agent account. */
  verify: (body: ConfirmCode, options?: CallOptions): Promise<AgentAccountsVerifyResponse> =>
    json('POST', '/api/v1/agent-accounts/verify', { body }, options),
})

const createAgents = ({ json }: Calls) => ({
  /** List the agents of the boxes with their versions, and get the rollout of new builds. */
  list: (options?: CallOptions): Promise<AgentsListResponse> => json('GET', '/api/v1/agents', {}, options),
  /** Change which agents get new builds, or pause the upgrades. */
  updateRollout: (body?: PatchAgentRollout, options?: CallOptions): Promise<AgentsUpdateRolloutResponse> =>
    json('PATCH', '/api/v1/agents/rollout', { body }, options),
})

const createAudit = ({ json }: Calls) => ({
  /** List the events of the audit log, newest first. */
  list: (query?: AuditListQuery, options?: CallOptions): Promise<AuditListResponse> =>
    json('GET', '/api/v1/audit', { query }, options),
  /** Read the hash chain of the audit log, oldest event first. */
  listChain: (query?: AuditListChainQuery, options?: CallOptions): Promise<AuditListChainResponse> =>
    json('GET', '/api/v1/audit/chain', { query }, options),
  /** Report what a client has done in a box. */
  report: (body: AuditReportRequest, options?: CallOptions): Promise<AuditReportResponse> =>
    json('POST', '/api/v1/audit', { body }, options),
})

const createAuditSink = ({ json }: Calls) => ({
  /** Get the endpoint that receives the audit log. */
  get: (options?: CallOptions): Promise<AuditSinkGetResponse> =>
    json('GET', '/api/v1/audit/sink', {}, options),
  /** Stop delivering the audit log. */
  remove: (options?: CallOptions): Promise<undefined> => json('DELETE', '/api/v1/audit/sink', {}, options),
  /** Deliver the audit log to an HTTPS endpoint. */
  set: (body: PutAuditSink, options?: CallOptions): Promise<AuditSinkSetResponse> =>
    json('PUT', '/api/v1/audit/sink', { body }, options),
})

const createAwsRoles = ({ json }: Calls) => ({
  /** Cancel a link that connects an AWS role. */
  cancelLink: (id: string, options?: CallOptions): Promise<AwsRolesCancelLinkResponse> =>
    json('DELETE', `/api/v1/aws-connect/${encodeURIComponent(id)}`, {}, options),
  /** Connect the role that the stack of a link has created. */
  completeLink: (
    body: AwsRolesCompleteLinkRequest,
    options?: CallOptions,
  ): Promise<AwsRolesCompleteLinkResponse> => json('POST', '/api/v1/aws-connect/callback', { body }, options),
  /** Connect an AWS role. */
  create: (body: AwsRolesCreateRequest, options?: CallOptions): Promise<AwsRolesCreateResponse> =>
    json('POST', '/api/v1/aws-roles', { body }, options),
  /** Create a link that creates and connects an AWS role. */
  createLink: (
    body?: AwsRolesCreateLinkRequest,
    options?: CallOptions,
  ): Promise<AwsRolesCreateLinkResponse> => json('POST', '/api/v1/aws-connect', { body }, options),
  /** Disconnect an AWS role. */
  delete: (id: string, options?: CallOptions): Promise<AwsRolesDeleteResponse> =>
    json('DELETE', `/api/v1/aws-roles/${encodeURIComponent(id)}`, {}, options),
  /** List the AWS roles that boxes can assume. */
  list: (options?: CallOptions): Promise<AwsRolesListResponse> =>
    json('GET', '/api/v1/aws-roles', {}, options),
  /** Verify that the workspace can assume an AWS role. */
  verify: (id: string, options?: CallOptions): Promise<AwsRolesVerifyResponse> =>
    json('POST', `/api/v1/aws-roles/${encodeURIComponent(id)}/verify`, {}, options),
})

const createBilling = ({ json }: Calls) => ({
  /** Get the balance, the plan and the prices of the workspace. */
  get: (options?: CallOptions): Promise<Billing> => json('GET', '/api/v1/billing', {}, options),
  /** List the entries of the ledger, newest first. */
  listEntries: (
    query?: BillingListEntriesQuery,
    options?: CallOptions,
  ): Promise<BillingListEntriesResponse> => json('GET', '/api/v1/billing/entries', { query }, options),
  /** Receive an event of Stripe. */
  receiveStripeEvent: (
    body: RequestBody,
    options?: CallOptions,
  ): Promise<BillingReceiveStripeEventResponse> =>
    json('POST', '/api/v1/billing/stripe/webhook', { body, isRaw: true }, options),
  /** Remove the saved card. */
  removeCard: (options?: CallOptions): Promise<undefined> =>
    json('DELETE', '/api/v1/billing/card', {}, options),
  /** Start a payment by card. */
  startCheckout: (body: Checkout, options?: CallOptions): Promise<BillingStartCheckoutResponse> =>
    json('POST', '/api/v1/billing/checkout', { body }, options),
})

const createBoxes = ({ json }: Calls) => ({
  /** Create a box. */
  create: (body?: CreateBox, options?: CallOptions): Promise<BoxesCreateResponse> =>
    json('POST', '/api/v1/boxes', { body, isIdempotent: true }, options),
  /** Take a snapshot of a box as a template. */
  createTemplate: (
    id: string,
    body: CreateTemplate,
    options?: CallOptions,
  ): Promise<BoxesCreateTemplateResponse> =>
    json(
      'POST',
      `/api/v1/boxes/${encodeURIComponent(id)}/template`,
      { body, isIdempotent: true, isSlow: true },
      options,
    ),
  /** Delete a box and its files. */
  delete: (id: string, options?: CallOptions): Promise<BoxesDeleteResponse> =>
    json('DELETE', `/api/v1/boxes/${encodeURIComponent(id)}`, {}, options),
  /** Create a box with a copy of the files of a box. */
  fork: (id: string, body?: ForkBox, options?: CallOptions): Promise<BoxesForkResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/fork`, { body, isIdempotent: true }, options),
  /** Get a box with its state, vitals, recent state changes and current job. */
  get: (id: string, options?: CallOptions): Promise<BoxDetail> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}`, {}, options),
  /** Get CPU, memory, disk and network usage of a box over time. */
  getMetrics: (id: string, query?: BoxesGetMetricsQuery, options?: CallOptions): Promise<Metrics> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/metrics`, { query }, options),
  /** Get the processes and listening ports of a box at a moment. */
  getProcessesAt: (id: string, query: BoxesGetProcessesAtQuery, options?: CallOptions): Promise<ProcsAt> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/procs-at`, { query }, options),
  /** Give a box to another member. */
  give: (id: string, body: GiveBox, options?: CallOptions): Promise<BoxesGiveResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/owner`, { body, isIdempotent: true }, options),
  /** List boxes, newest first. */
  list: (query?: BoxesListQuery, options?: CallOptions): Promise<BoxesListResponse> =>
    json('GET', '/api/v1/boxes', { query }, options),
  /** List the CPU of boxes. */
  listCpu: (query: BoxesListCpuQuery, options?: CallOptions): Promise<BoxesListCpuResponse> =>
    json('GET', '/api/v1/metrics/cpu', { query }, options),
  /** Move a box to another region. */
  move: (id: string, body: MoveBox, options?: CallOptions): Promise<BoxesMoveResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/region`, { body, isIdempotent: true }, options),
  /** Change the tier of a box. */
  resize: (id: string, body: ResizeBox, options?: CallOptions): Promise<BoxesResizeResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/resize`, { body, isIdempotent: true }, options),
  /** Suspend a box. */
  suspend: (id: string, query?: BoxesSuspendQuery, options?: CallOptions): Promise<BoxesSuspendResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/suspend`, { query }, options),
  /** Change the name and the labels of a box, when it is suspended and snapshotted, or its environment variables. */
  update: (id: string, body?: PatchBox, options?: CallOptions): Promise<BoxesUpdateResponse> =>
    json('PATCH', `/api/v1/boxes/${encodeURIComponent(id)}`, { body }, options),
  /** Wake a box. */
  wake: (id: string, options?: CallOptions): Promise<BoxesWakeResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/wake`, {}, options),
})

const createCommands = ({ json }: Calls) => ({
  /** Delete a command and its output. */
  delete: (id: string, commandId: string, options?: CallOptions): Promise<undefined> =>
    json(
      'DELETE',
      `/api/v1/boxes/${encodeURIComponent(id)}/commands/${encodeURIComponent(commandId)}`,
      {},
      options,
    ),
  /** Delete all commands of a box. */
  deleteAll: (id: string, options?: CallOptions): Promise<CommandsDeleteAllResponse> =>
    json('DELETE', `/api/v1/boxes/${encodeURIComponent(id)}/commands`, {}, options),
  /** Get a command. */
  get: (id: string, commandId: string, options?: CallOptions): Promise<CommandsGetResponse> =>
    json(
      'GET',
      `/api/v1/boxes/${encodeURIComponent(id)}/commands/${encodeURIComponent(commandId)}`,
      {},
      options,
    ),
  /** Get the output of a command. */
  getOutput: (
    id: string,
    commandId: string,
    query?: CommandsGetOutputQuery,
    options?: CallOptions,
  ): Promise<CommandOutput> =>
    json(
      'GET',
      `/api/v1/boxes/${encodeURIComponent(id)}/commands/${encodeURIComponent(commandId)}/output`,
      { query },
      options,
    ),
  /** List the commands of a box, newest first. */
  list: (id: string, query?: CommandsListQuery, options?: CallOptions): Promise<CommandsListResponse> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/commands`, { query }, options),
  /** Run a command and return its output, or start it detached or attached. */
  run: (box: string, body: ExecRequest, options?: CallOptions): Promise<CommandsRunResponse> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/exec`, { body, isSlow: true }, options),
})

const createDesktop = ({ connect, json }: Calls) => ({
  /** Stop the desktop of a box. */
  delete: (box: string, query?: DesktopDeleteQuery, options?: CallOptions): Promise<DesktopStopped> =>
    json('DELETE', `/v1/box/${encodeURIComponent(box)}/desktop`, { query }, options),
  /** Return the programs of the desktop of a box, and its running session. */
  get: (box: string, options?: CallOptions): Promise<DesktopStatus> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/desktop`, {}, options),
  /** Start the desktop of a box, or Chromium on its whole screen. */
  start: (box: string, body?: DesktopStart, options?: CallOptions): Promise<DesktopStarted> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/desktop/start`, { body, isSlow: true }, options),
  /** Stop the desktop of a box. */
  stop: (box: string, body?: DesktopStop, options?: CallOptions): Promise<DesktopStopResponse> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/desktop/stop`, { body }, options),
  /** View and control the desktop of a box with VNC over a WebSocket. */
  view: (box: string, handlers: SocketHandlers, options?: CallOptions): Promise<Socket> =>
    connect(`/v1/box/${encodeURIComponent(box)}/desktop/stream`, handlers, {}, options),
})

const createDownloads = ({ json, open }: Calls) => ({
  /** Create a link that downloads a file or directory once. */
  createLink: (id: string, body: CreateDownloadLink, options?: CallOptions): Promise<DownloadLink> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/download-links`, { body }, options),
  /** Download the file or directory of a download link. */
  get: (token: string, options?: CallOptions): Promise<OpenResponse> =>
    open('GET', `/api/v1/downloads/${encodeURIComponent(token)}`, {}, options),
})

const createEnvironments = ({ json }: Calls) => ({
  /** Create an environment. */
  create: (body: CreateEnvironment, options?: CallOptions): Promise<EnvironmentsCreateResponse> =>
    json('POST', '/api/v1/environments', { body }, options),
  /** Delete an environment. */
  delete: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/environments/${encodeURIComponent(id)}`, {}, options),
  /** List environments, in the order of their names. */
  list: (options?: CallOptions): Promise<EnvironmentsListResponse> =>
    json('GET', '/api/v1/environments', {}, options),
  /** Make an environment the default. */
  makeDefault: (id: string, options?: CallOptions): Promise<EnvironmentsMakeDefaultResponse> =>
    json('POST', `/api/v1/environments/${encodeURIComponent(id)}/default`, {}, options),
  /** Remove a secret file. */
  removeFile: (id: string, query: EnvironmentsRemoveFileQuery, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/environments/${encodeURIComponent(id)}/files`, { query }, options),
  /** Remove a repository. */
  removeRepo: (id: string, query: EnvironmentsRemoveRepoQuery, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/environments/${encodeURIComponent(id)}/repos`, { query }, options),
  /** Remove a variable. */
  removeVariable: (id: string, name: string, options?: CallOptions): Promise<undefined> =>
    json(
      'DELETE',
      `/api/v1/environments/${encodeURIComponent(id)}/vars/${encodeURIComponent(name)}`,
      {},
      options,
    ),
  /** Set a secret file. */
  setFile: (id: string, body: EnvironmentFile, options?: CallOptions): Promise<EnvironmentsSetFileResponse> =>
    json('PUT', `/api/v1/environments/${encodeURIComponent(id)}/files`, { body }, options),
  /** Add a repository, or change it. */
  setRepo: (id: string, body: EnvironmentRepo, options?: CallOptions): Promise<EnvironmentsSetRepoResponse> =>
    json('POST', `/api/v1/environments/${encodeURIComponent(id)}/repos`, { body }, options),
  /** Set whether boxes are safe for third parties, and which credentials they get. */
  setToggles: (
    id: string,
    body: ChangeEnvironmentToggles,
    options?: CallOptions,
  ): Promise<EnvironmentsSetTogglesResponse> =>
    json('POST', `/api/v1/environments/${encodeURIComponent(id)}/toggles`, { body }, options),
  /** Set a variable. */
  setVariable: (
    id: string,
    body: SetEnvironmentVariable,
    options?: CallOptions,
  ): Promise<EnvironmentsSetVariableResponse> =>
    json('POST', `/api/v1/environments/${encodeURIComponent(id)}/vars`, { body }, options),
  /** Change an environment. */
  update: (id: string, body: PatchEnvironment, options?: CallOptions): Promise<EnvironmentsUpdateResponse> =>
    json('PATCH', `/api/v1/environments/${encodeURIComponent(id)}`, { body }, options),
  /** Pin the boxes of an environment to its latest version. */
  upgradeBoxes: (id: string, options?: CallOptions): Promise<UpgradedEnvironment> =>
    json('POST', `/api/v1/environments/${encodeURIComponent(id)}/upgrade`, {}, options),
})

const createFederation = ({ json }: Calls) => ({
  /** Get the public documents of the identity issuer. */
  getDocuments: (options?: CallOptions): Promise<FederationGetDocumentsResponse> =>
    json('GET', '/api/v1/federation/documents', {}, options),
})

const createFeed = ({ connect }: Calls) => ({
  /** Follow boxes, snapshots and operations over a WebSocket. */
  open: (handlers: SocketHandlers, query?: FeedOpenQuery, options?: CallOptions): Promise<Socket> =>
    connect('/api/v1/feed', handlers, { query }, options),
})

const createFiles = ({ json, open }: Calls) => ({
  /** Download a file of up to 1 GiB, or a directory as a tar stream. */
  download: (box: string, query: FilesDownloadQuery, options?: CallOptions): Promise<OpenResponse> =>
    open('GET', `/v1/box/${encodeURIComponent(box)}/download`, { query }, options),
  /** List a directory. */
  list: (box: string, query: FilesListQuery, options?: CallOptions): Promise<FileList> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/files/list`, { query }, options),
  /** Create a directory. */
  makeDirectory: (box: string, body: MakeDirectory, options?: CallOptions): Promise<DirectoryCreated> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/files/mkdir`, { body }, options),
  /** Move or rename a file or a directory. */
  move: (box: string, body: MoveFile, options?: CallOptions): Promise<FileMoved> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/files/move`, { body }, options),
  /** Read a file of up to 1 MiB. */
  read: (box: string, query: FilesReadQuery, options?: CallOptions): Promise<FileRead> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/files`, { query }, options),
  /** Remove a file or a directory. */
  remove: (box: string, query: FilesRemoveQuery, options?: CallOptions): Promise<FileRemoved> =>
    json('DELETE', `/v1/box/${encodeURIComponent(box)}/files`, { query }, options),
  /** Get the type, the size and the other attributes of a file. */
  stat: (box: string, query: FilesStatQuery, options?: CallOptions): Promise<FileStat> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/files/stat`, { query }, options),
  /** Write a file of up to 1 GiB from the raw body, atomically. */
  upload: (
    box: string,
    query: FilesUploadQuery,
    body: RequestBody,
    options?: CallOptions,
  ): Promise<FileUploaded> =>
    json(
      'PUT',
      `/v1/box/${encodeURIComponent(box)}/upload`,
      { query, body, isRaw: true, isSlow: true },
      options,
    ),
  /** Write a file of up to 1 MiB, atomically. */
  write: (box: string, body: WriteFile, options?: CallOptions): Promise<FileWritten> =>
    json('PUT', `/v1/box/${encodeURIComponent(box)}/files`, { body }, options),
})

const createImages = ({ json }: Calls) => ({
  /** Remove a downloaded image. */
  delete: (query: ImagesDeleteQuery, options?: CallOptions): Promise<undefined> =>
    json('DELETE', '/api/v1/images', { query }, options),
  /** List the images that new boxes use without a download. */
  list: (query?: ImagesListQuery, options?: CallOptions): Promise<ImagesListResponse> =>
    json('GET', '/api/v1/images', { query }, options),
  /** Download an image, or a newer version of it. */
  pull: (body: PullImage, options?: CallOptions): Promise<ImagesPullResponse> =>
    json('POST', '/api/v1/images', { body, isSlow: true }, options),
})

const createKeys = ({ json }: Calls) => ({
  /** Create an API key. */
  create: (body: CreateKey, options?: CallOptions): Promise<KeysCreateResponse> =>
    json('POST', '/api/v1/keys', { body }, options),
  /** Get an API key. */
  get: (id: string, options?: CallOptions): Promise<KeysGetResponse> =>
    json('GET', `/api/v1/keys/${encodeURIComponent(id)}`, {}, options),
  /** List API keys, newest first. */
  list: (query?: KeysListQuery, options?: CallOptions): Promise<KeysListResponse> =>
    json('GET', '/api/v1/keys', { query }, options),
  /** Revoke an API key. */
  revoke: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/keys/${encodeURIComponent(id)}`, {}, options),
  /** Replace the secret of an API key. */
  rotate: (id: string, options?: CallOptions): Promise<KeysRotateResponse> =>
    json('POST', `/api/v1/keys/${encodeURIComponent(id)}/rotate`, {}, options),
  /** Change the name, expiry or limits of an API key. */
  update: (id: string, body?: UpdateKey, options?: CallOptions): Promise<KeysUpdateResponse> =>
    json('PATCH', `/api/v1/keys/${encodeURIComponent(id)}`, { body }, options),
})

const createMachines = ({ json }: Calls) => ({
  /** Create a token that enrolls a machine as a box. */
  createToken: (body?: CreateEnrollment, options?: CallOptions): Promise<CreateEnrollmentResponse> =>
    json('POST', '/api/v1/machines', { body }, options),
  /** List the tokens that can still enroll a machine, newest first. */
  listTokens: (options?: CallOptions): Promise<MachinesListTokensResponse> =>
    json('GET', '/api/v1/machines', {}, options),
  /** Revoke a token that enrolls a machine. */
  revokeToken: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/machines/${encodeURIComponent(id)}`, {}, options),
})

const createMembers = ({ json }: Calls) => ({
  /** Invite a member. */
  invite: (body: InviteMember, options?: CallOptions): Promise<MembersInviteResponse> =>
    json('POST', '/api/v1/members', { body }, options),
  /** List members, oldest first. */
  list: (options?: CallOptions): Promise<MembersListResponse> => json('GET', '/api/v1/members', {}, options),
  /** Remove a member, or leave the workspace. */
  remove: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/members/${encodeURIComponent(id)}`, {}, options),
  /** Change the role or name of a member. */
  update: (id: string, body?: UpdateMember, options?: CallOptions): Promise<MembersUpdateResponse> =>
    json('PATCH', `/api/v1/members/${encodeURIComponent(id)}`, { body }, options),
})

const createMounts = ({ json }: Calls) => ({
  /** Mount a secret on a box. */
  create: (id: string, body: MountSecret, options?: CallOptions): Promise<MountsCreateResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/secrets`, { body }, options),
  /** Unmount a secret from a box. */
  delete: (id: string, mountId: string, options?: CallOptions): Promise<undefined> =>
    json(
      'DELETE',
      `/api/v1/boxes/${encodeURIComponent(id)}/secrets/${encodeURIComponent(mountId)}`,
      {},
      options,
    ),
  /** List the secrets of a box. */
  list: (id: string, options?: CallOptions): Promise<MountsListResponse> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/secrets`, {}, options),
})

const createOperations = ({ json }: Calls) => ({
  /** Get an operation. */
  get: (id: string, options?: CallOptions): Promise<OperationsGetResponse> =>
    json('GET', `/api/v1/operations/${encodeURIComponent(id)}`, {}, options),
})

const createOperator = ({ json }: Calls) => ({
  /** Add credit to a workspace. */
  addCredit: (id: string, body: Credit, options?: CallOptions): Promise<OperatorAddCreditResponse> =>
    json('POST', `/api/v1/operator/workspaces/${encodeURIComponent(id)}/credit`, { body }, options),
  /** Compare balances and totals with the ledger. */
  checkLedger: (
    query?: OperatorCheckLedgerQuery,
    options?: CallOptions,
  ): Promise<OperatorCheckLedgerResponse> => json('GET', '/api/v1/operator/ledger-check', { query }, options),
  /** Pause a workspace. */
  hold: (id: string, body: HoldWorkspace, options?: CallOptions): Promise<OperatorHoldResponse> =>
    json('PUT', `/api/v1/operator/workspaces/${encodeURIComponent(id)}/hold`, { body }, options),
  /** List the workspaces of the coordinator, newest first. */
  listWorkspaces: (
    query?: OperatorListWorkspacesQuery,
    options?: CallOptions,
  ): Promise<OperatorListWorkspacesResponse> =>
    json('GET', '/api/v1/operator/workspaces', { query }, options),
  /** End the pause of a workspace. */
  release: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/operator/workspaces/${encodeURIComponent(id)}/hold`, {}, options),
  /** Rotate the signing key of the identity issuer. */
  rotateKey: (options?: CallOptions): Promise<OperatorRotateKeyResponse> =>
    json('POST', '/api/v1/operator/federation/rotate', {}, options),
})

const createPolicies = ({ json }: Calls) => ({
  /** Get the policies of the workspace. */
  get: (options?: CallOptions): Promise<WorkspacePolicy> =>
    json('GET', '/api/v1/workspace/policies', {}, options),
  /** Change policies of the workspace. */
  update: (body?: PatchPolicy, options?: CallOptions): Promise<WorkspacePolicy> =>
    json('PATCH', '/api/v1/workspace/policies', { body }, options),
})

const createPortShares = ({ json }: Calls) => ({
  /** Share a port of a box by a link. */
  create: (id: string, body: CreatePortShare, options?: CallOptions): Promise<CreatePortShareResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/port-shares`, { body }, options),
  /** List the links to the ports of all boxes. */
  list: (query?: PortSharesListQuery, options?: CallOptions): Promise<PortShareList> =>
    json('GET', '/api/v1/port-shares', { query }, options),
  /** Get the links to the ports of a box, and its listening ports. */
  listForBox: (id: string, options?: CallOptions): Promise<PortShares> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/port-shares`, {}, options),
  /** Create a URL that opens a link for members without a sign-in. */
  open: (id: string, options?: CallOptions): Promise<OpenPortShareResponse> =>
    json('POST', `/api/v1/port-shares/${encodeURIComponent(id)}/open`, {}, options),
  /** Revoke a link. */
  revoke: (id: string, options?: CallOptions): Promise<PortSharesRevokeResponse> =>
    json('DELETE', `/api/v1/port-shares/${encodeURIComponent(id)}`, {}, options),
})

const createPorts = ({ connect }: Calls) => ({
  /** Connect to a listening TCP port of the box over a WebSocket. */
  connect: (box: string, port: number, handlers: SocketHandlers, options?: CallOptions): Promise<Socket> =>
    connect(`/v1/box/${encodeURIComponent(box)}/ports/${encodeURIComponent(port)}`, handlers, {}, options),
})

const createProcesses = ({ connect, json, open }: Calls) => ({
  /** Attach to a command that was started with attached: live output and stdin over a WebSocket. */
  attach: (
    box: string,
    processId: string,
    handlers: SocketHandlers,
    query?: ProcessesAttachQuery,
    options?: CallOptions,
  ): Promise<Socket> =>
    connect(
      `/v1/box/${encodeURIComponent(box)}/exec/${encodeURIComponent(processId)}/attach`,
      handlers,
      { query },
      options,
    ),
  /** Stream the output of a detached process as server-sent events; resume with Last-Event-ID. */
  followOutput: (
    box: string,
    processId: string,
    query?: ProcessesFollowOutputQuery,
    options?: CallOptions,
  ): Promise<OpenResponse> =>
    open(
      'GET',
      `/v1/box/${encodeURIComponent(box)}/exec/${encodeURIComponent(processId)}/stream`,
      { query },
      options,
    ),
  /** Get a detached process and the tail of its output. */
  get: (
    box: string,
    processId: string,
    query?: ProcessesGetQuery,
    options?: CallOptions,
  ): Promise<ExecStatus> =>
    json(
      'GET',
      `/v1/box/${encodeURIComponent(box)}/exec/${encodeURIComponent(processId)}`,
      { query },
      options,
    ),
  /** Terminate a detached process and its descendants. */
  kill: (box: string, processId: string, options?: CallOptions): Promise<ExecKilled> =>
    json('DELETE', `/v1/box/${encodeURIComponent(box)}/exec/${encodeURIComponent(processId)}`, {}, options),
  /** List detached processes, newest first. */
  list: (box: string, options?: CallOptions): Promise<ExecList> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/exec`, {}, options),
  /** List the processes of a box with their CPU and memory usage. */
  listLive: (box: string, query?: ProcessesListLiveQuery, options?: CallOptions): Promise<LiveProcesses> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/processes`, { query }, options),
})

const createPrompts = ({ json, open }: Calls) => ({
  /** Stream the events of all runs in progress, and of those that start meanwhile. */
  followAll: (box: string, query?: PromptsFollowAllQuery, options?: CallOptions): Promise<OpenResponse> =>
    open('GET', `/v1/box/${encodeURIComponent(box)}/prompts/events`, { query }, options),
  /** Get a run with the whole prompt and the end of its stderr. */
  get: (box: string, runId: string, options?: CallOptions): Promise<PromptStatus> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/prompts/${encodeURIComponent(runId)}`, {}, options),
  /** Interrupt a run, or remove a prompt from the queue. */
  interrupt: (box: string, runId: string, options?: CallOptions): Promise<PromptInterrupted> =>
    json(
      'POST',
      `/v1/box/${encodeURIComponent(box)}/prompts/${encodeURIComponent(runId)}/interrupt`,
      {},
      options,
    ),
  /** Interrupt all runs, and empty the queue. */
  interruptAll: (
    box: string,
    query?: PromptsInterruptAllQuery,
    options?: CallOptions,
  ): Promise<PromptsInterrupted> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/prompts/interrupt`, { query }, options),
  /** List the newest runs, and the queue. */
  list: (box: string, query?: PromptsListQuery, options?: CallOptions): Promise<PromptList> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/prompts`, { query }, options),
  /** List the conversations, most recently active first. */
  listConversations: (box: string, options?: CallOptions): Promise<ConversationList> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/prompts/conversations`, {}, options),
  /** Get a page of the events of a run, or stream them. */
  listEvents: (
    box: string,
    runId: string,
    query?: PromptsListEventsQuery,
    options?: CallOptions,
  ): Promise<PromptEvents> =>
    json(
      'GET',
      `/v1/box/${encodeURIComponent(box)}/prompts/${encodeURIComponent(runId)}/events`,
      { query },
      options,
    ),
  /** Send a prompt to a coding agent on the box, or add it to the queue. */
  start: (box: string, body: PromptRequest, options?: CallOptions): Promise<PromptsStartResponse> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/prompts`, { body, isSlow: true }, options),
})

const createRegions = ({ json }: Calls) => ({
  /** List the regions in which boxes can be created, with what their boxes can do. */
  list: (options?: CallOptions): Promise<RegionsListResponse> => json('GET', '/api/v1/regions', {}, options),
})

const createRepos = ({ json }: Calls) => ({
  /** Get the repositories of a box, with what git has done for each. */
  list: (id: string, options?: CallOptions): Promise<ReposListResponse> =>
    json('GET', `/api/v1/boxes/${encodeURIComponent(id)}/repos`, {}, options),
  /** Update the repositories of a box. */
  update: (id: string, options?: CallOptions): Promise<ReposUpdateResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/repos/update`, {}, options),
})

const createSecrets = ({ json }: Calls) => ({
  /** Create a secret. */
  create: (body: CreateSecret, options?: CallOptions): Promise<SecretsCreateResponse> =>
    json('POST', '/api/v1/secrets', { body }, options),
  /** Delete a secret. */
  delete: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/secrets/${encodeURIComponent(id)}`, {}, options),
  /** Grant a secret to a box or to the boxes of a member. */
  grant: (id: string, body: Grantee, options?: CallOptions): Promise<SecretsGrantResponse> =>
    json('POST', `/api/v1/secrets/${encodeURIComponent(id)}/grants`, { body }, options),
  /** List the secrets of the workspace. */
  list: (query?: SecretsListQuery, options?: CallOptions): Promise<SecretsListResponse> =>
    json('GET', '/api/v1/secrets', { query }, options),
  /** List where a secret has been used. */
  listUsage: (id: string, options?: CallOptions): Promise<SecretsListUsageResponse> =>
    json('GET', `/api/v1/secrets/${encodeURIComponent(id)}/usage`, {}, options),
  /** Remove a grant of a secret. */
  removeGrant: (id: string, grantId: string, options?: CallOptions): Promise<undefined> =>
    json(
      'DELETE',
      `/api/v1/secrets/${encodeURIComponent(id)}/grants/${encodeURIComponent(grantId)}`,
      {},
      options,
    ),
  /** Change a secret. */
  update: (id: string, body: PatchSecret, options?: CallOptions): Promise<SecretsUpdateResponse> =>
    json('PATCH', `/api/v1/secrets/${encodeURIComponent(id)}`, { body }, options),
})

const createSession = ({ json }: Calls) => ({
  /** Change your email address. */
  changeEmail: (body: ConfirmCode, options?: CallOptions): Promise<SessionChangeEmailResponse> =>
    json('POST', '/api/v1/session/email/confirm', { body }, options),
  /** Get the current session. */
  get: (options?: CallOptions): Promise<CurrentSession> => json('GET', '/api/v1/session', {}, options),
  /** Send a code to your new email address. */
  sendEmailCode: (body: ChangeEmail, options?: CallOptions): Promise<IssuedCode> =>
    json('POST', '/api/v1/session/email', { body }, options),
  /** Sign out. */
  signOut: (options?: CallOptions): Promise<undefined> => json('DELETE', '/api/v1/session', {}, options),
  /** Switch to another workspace. */
  switchWorkspace: (body: SwitchWorkspace, options?: CallOptions): Promise<SignedIn> =>
    json('POST', '/api/v1/session/workspace', { body }, options),
  /** Change your name. */
  updateUser: (body: UpdateUser, options?: CallOptions): Promise<SessionUpdateUserResponse> =>
    json('PATCH', '/api/v1/session/user', { body }, options),
})

const createSessions = ({ json }: Calls) => ({
  /** End one of your sessions. */
  delete: (id: string, options?: CallOptions): Promise<undefined> =>
    json('DELETE', `/api/v1/sessions/${encodeURIComponent(id)}`, {}, options),
  /** List your sessions. */
  list: (options?: CallOptions): Promise<SessionsListResponse> =>
    json('GET', '/api/v1/sessions', {}, options),
})

const createSignIn = ({ json }: Calls) => ({
  /** Sign in with a code. */
  confirm: (body: ConfirmCode, options?: CallOptions): Promise<SignedIn> =>
    json('POST', '/api/v1/sign-in/confirm', { body }, options),
  /** Create a link that signs in the owner. */
  createOwnerLink: (body: CreateSignInLink, options?: CallOptions): Promise<SignInLink> =>
    json('POST', '/api/v1/sign-in/owner/link', { body }, options),
  /** Sign in as the owner on the coordinator's machine. */
  owner: (body: OwnerSignIn, options?: CallOptions): Promise<SignedIn> =>
    json('POST', '/api/v1/sign-in/owner', { body }, options),
  /** Send a sign-in code by email. */
  sendCode: (body: SignIn, options?: CallOptions): Promise<IssuedCode> =>
    json('POST', '/api/v1/sign-in', { body }, options),
})

const createSnapshots = ({ json }: Calls) => ({
  /** Take a snapshot of the files of a box. */
  create: (body: CreateSnapshot, options?: CallOptions): Promise<SnapshotsCreateResponse> =>
    json('POST', '/api/v1/snapshots', { body, isIdempotent: true, isSlow: true }, options),
  /** Delete a snapshot. */
  delete: (id: string, options?: CallOptions): Promise<SnapshotsDeleteResponse> =>
    json('DELETE', `/api/v1/snapshots/${encodeURIComponent(id)}`, {}, options),
  /** List snapshots, newest first. */
  list: (query?: SnapshotsListQuery, options?: CallOptions): Promise<SnapshotsListResponse> =>
    json('GET', '/api/v1/snapshots', { query }, options),
  /** Make a snapshot a template. */
  makeTemplate: (
    id: string,
    body: NameTemplate,
    options?: CallOptions,
  ): Promise<SnapshotsMakeTemplateResponse> =>
    json('POST', `/api/v1/snapshots/${encodeURIComponent(id)}/template`, { body }, options),
  /** Make a template a plain snapshot. */
  removeTemplate: (id: string, options?: CallOptions): Promise<SnapshotsRemoveTemplateResponse> =>
    json('DELETE', `/api/v1/snapshots/${encodeURIComponent(id)}/template`, {}, options),
  /** Create a box with the files of a snapshot. */
  restore: (id: string, body?: RestoreSnapshot, options?: CallOptions): Promise<SnapshotsRestoreResponse> =>
    json(
      'POST',
      `/api/v1/snapshots/${encodeURIComponent(id)}/restore`,
      { body, isIdempotent: true },
      options,
    ),
})

const createTeam = ({ json }: Calls) => ({
  /** Get what the members and boxes of the workspace do. */
  getStatus: (options?: CallOptions): Promise<TeamGetStatusResponse> =>
    json('GET', '/api/v1/team/status', {}, options),
})

const createTerminals = ({ connect, json }: Calls) => ({
  /** Attach to a terminal session, or start one, over a WebSocket. */
  attach: (
    box: string,
    handlers: SocketHandlers,
    query?: TerminalsAttachQuery,
    options?: CallOptions,
  ): Promise<Socket> => connect(`/v1/box/${encodeURIComponent(box)}/terminal`, handlers, { query }, options),
  /** Terminate the programs of a terminal session. */
  kill: (box: string, session: string, options?: CallOptions): Promise<TerminalKilled> =>
    json(
      'DELETE',
      `/v1/box/${encodeURIComponent(box)}/terminal/sessions/${encodeURIComponent(session)}`,
      {},
      options,
    ),
  /** List running terminal sessions, newest first. */
  list: (box: string, options?: CallOptions): Promise<TerminalList> =>
    json('GET', `/v1/box/${encodeURIComponent(box)}/terminal/sessions`, {}, options),
  /** Start a terminal session. */
  start: (box: string, body?: TerminalStart, options?: CallOptions): Promise<TerminalStarted> =>
    json('POST', `/v1/box/${encodeURIComponent(box)}/terminal/sessions`, { body, isSlow: true }, options),
})

const createTickets = ({ json }: Calls) => ({
  /** Create a ticket for one box. */
  create: (id: string, body?: CreateTicketRequest, options?: CallOptions): Promise<CreateTicketResponse> =>
    json('POST', `/api/v1/boxes/${encodeURIComponent(id)}/tickets`, { body }, options),
})

const createUsage = ({ json }: Calls) => ({
  /** Get what the boxes have cost in a month. */
  get: (query?: UsageGetQuery, options?: CallOptions): Promise<UsageGetResponse> =>
    json('GET', '/api/v1/usage', { query }, options),
})

const createWorkspace = ({ json }: Calls) => ({
  /** Close the workspace. */
  close: (body: CloseWorkspace, options?: CallOptions): Promise<WorkspaceCloseResponse> =>
    json('POST', '/api/v1/workspace/close', { body }, options),
  /** Get the workspace of the session. */
  get: (options?: CallOptions): Promise<WorkspaceGetResponse> =>
    json('GET', '/api/v1/workspace', {}, options),
  /** Reopen a closing workspace. */
  reopen: (options?: CallOptions): Promise<WorkspaceReopenResponse> =>
    json('POST', '/api/v1/workspace/reopen', {}, options),
  /** Change the name or the data retention of the workspace. */
  update: (body?: UpdateWorkspace, options?: CallOptions): Promise<WorkspaceUpdateResponse> =>
    json('PATCH', '/api/v1/workspace', { body }, options),
})

const createWorkspaces = ({ json }: Calls) => ({
  /** Create a workspace. */
  create: (body: CreateWorkspace, options?: CallOptions): Promise<WorkspacesCreateResponse> =>
    json('POST', '/api/v1/workspaces', { body }, options),
})

/** One method for each route of the API, by the groups of the operationIds. */
export const createRoutes = (calls: Calls) => ({
  account: createAccount(calls),
  agentAccounts: createAgentAccounts(calls),
  agents: createAgents(calls),
  audit: createAudit(calls),
  auditSink: createAuditSink(calls),
  awsRoles: createAwsRoles(calls),
  billing: createBilling(calls),
  boxes: createBoxes(calls),
  commands: createCommands(calls),
  desktop: createDesktop(calls),
  downloads: createDownloads(calls),
  environments: createEnvironments(calls),
  federation: createFederation(calls),
  feed: createFeed(calls),
  files: createFiles(calls),
  images: createImages(calls),
  keys: createKeys(calls),
  machines: createMachines(calls),
  members: createMembers(calls),
  mounts: createMounts(calls),
  operations: createOperations(calls),
  operator: createOperator(calls),
  policies: createPolicies(calls),
  portShares: createPortShares(calls),
  ports: createPorts(calls),
  processes: createProcesses(calls),
  prompts: createPrompts(calls),
  regions: createRegions(calls),
  repos: createRepos(calls),
  secrets: createSecrets(calls),
  session: createSession(calls),
  sessions: createSessions(calls),
  signIn: createSignIn(calls),
  snapshots: createSnapshots(calls),
  team: createTeam(calls),
  terminals: createTerminals(calls),
  tickets: createTickets(calls),
  usage: createUsage(calls),
  workspace: createWorkspace(calls),
  workspaces: createWorkspaces(calls),
})

export type Routes = ReturnType<typeof createRoutes>
