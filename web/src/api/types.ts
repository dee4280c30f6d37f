// The shapes of the server, under short names. They are generated from the program itself.
import type { components } from "../../../docs/narrows";

type Schemas = components["schemas"];

export type Item = Schemas["Item"];
export type UserMessageItem = Schemas["UserMessageItem"];
export type TextItem = Schemas["TextItem"];
export type ThinkingItem = Schemas["ThinkingItem"];
export type ToolCallItem = Schemas["ToolCallItem"];
export type TodoListItem = Schemas["TodoListItem"];
export type ArtifactItem = Schemas["ArtifactItem"];
export type PermissionItem = Schemas["PermissionItem"];
export type PlanItem = Schemas["PlanItem"];
export type QuestionItem = Schemas["QuestionItem"];
export type BackgroundTaskItem = Schemas["BackgroundTaskItem"];
export type CompactionItem = Schemas["CompactionItem"];
export type NoticeItem = Schemas["NoticeItem"];
export type ErrorItem = Schemas["ErrorItem"];

export type ToolCall = Schemas["ToolCall"];
export type ToolStatus = Schemas["ToolStatus"];
export type Image = Schemas["Image"];
export type Hunk = Schemas["Hunk"];
export type Diff = Schemas["Diff"];
export type Todo = Schemas["Todo"];
export type TodoList = Schemas["TodoList"];
export type Location = Schemas["Location"];
export type QuestionPart = Schemas["QuestionPart"];
export type Usage = Schemas["Usage"];

export type Change = Schemas["Change"];
export type SessionInfo = Schemas["SessionInfo"];
export type Session = Schemas["Session"];
export type SessionPage = Schemas["SessionPage"];
export type ItemPage = Schemas["ItemPage"];
export type Hit = Schemas["Hit"];
export type SearchPage = Schemas["SearchPage"];
export type Turn = Schemas["Turn"];
export type FileTouched = Schemas["FileSum"];
export type Outline = Schemas["Outline"];
export type Facets = Schemas["Facets"];
export type Sources = Schemas["Sources"];

export type AgentInfo = Schemas["AgentInfo"];
export type AgentList = Schemas["AgentList"];
export type AgentSession = Schemas["AgentSession"];
export type AgentSessions = Schemas["AgentSessions"];
export type NewRun = Schemas["NewRun"];
export type RunState = Schemas["RunState"];
export type RunChange = Schemas["RunChange"];
export type RunChoice = Schemas["RunChoice"];
export type QueuedMessage = Schemas["QueuedMessage"];
export type SendMessage = Schemas["SendMessage"];
export type MessageTaken = Schemas["MessageTaken"];
export type Answer = Schemas["GiveAnswer"];
export type Done = Schemas["Done"];
