// Builds the OpenAPI document from the route table.

import type { Json, JsonObject } from "../base/json.ts";
import { problemTable, type Route, routes } from "../wire/index.ts";
import { jsonSchema } from "./json-schema.ts";

let document: JsonObject | undefined;

/** `prefix` is the path of all routes of the server. */
export function openApi(prefix: string): JsonObject {
  document ??= build();
  return { ...document, servers: [{ url: prefix || "/" }] };
}

function build(): JsonObject {
  const paths: Record<string, JsonObject> = {};
  for (const [name, route] of Object.entries(routes) as [string, Route][]) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route) };
  }
  const codes = Object.keys(problemTable);
  return {
    openapi: "3.1.0",
    info: { title: "Bough", version: "1", description: "Sessions, branches and runs of agents. See PROTOCOL.md." },
    security: [{ token: [] }, { apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
      schemas: {
        Problem: {
          type: "object",
          required: ["type", "title", "status", "code", "detail", "data", "requestId"],
          properties: {
            type: { type: "string" },
            title: { type: "string" },
            status: { type: "integer" },
            code: { type: "string", enum: codes },
            detail: { type: "string" },
            data: { type: "object" },
            requestId: { type: "string" },
          },
        },
      },
    },
  };
}

function operation(name: string, route: Route): JsonObject {
  const { summary, scope, otherScope, status, query, body, bodyOptional = false, takes, headers = [] } = route;
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, param]) => ({
    name: param!,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const { properties = {} } = jsonSchema(query) as { properties?: Record<string, Json> };
  const inQuery = Object.entries(properties).map(([param, schema]) => ({ name: param, in: "query", schema }));
  const inHeader = headers.map((header) => ({ name: header, in: "header", schema: { type: "string" } }));
  const requestBody = body
    ? { required: !bodyOptional, content: { "application/json": { schema: jsonSchema(body) } } }
    : takes && { required: true, content: { "application/octet-stream": {}, "multipart/form-data": {} } };
  return {
    operationId: name,
    summary,
    "x-scope": scope,
    ...(otherScope && { "x-other-scope": otherScope }),
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(requestBody && { requestBody }),
    responses: {
      [status]: { description: summary, ...contentOf(route) },
      default: {
        description: "A problem document (RFC 9457).",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

function contentOf({ gives }: Route): JsonObject {
  const types = { json: "application/json", bytes: "application/octet-stream", stream: "text/event-stream" };
  return gives in types ? { content: { [types[gives as keyof typeof types]]: {} } } : {};
}
