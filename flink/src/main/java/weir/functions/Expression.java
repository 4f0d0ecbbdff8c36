package weir.functions;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.flink.table.functions.ScalarFunction;

/**
 * An expression over the cells of a row. It means what the same expression means in SQL: an absent
 * value is {@code null}, and what is unknown is, too.
 */
public interface Expression {
    /** Its value for these cells. */
    Object value(Object[] cells);

    /** Reads one from JSON. */
    static Expression read(String json) {
        try {
            return read(new ObjectMapper().readTree(json));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("an expression of the job plan is no JSON", e);
        }
    }

    private static Expression read(JsonNode node) {
        if (node.has("column")) {
            int at = node.get("column").asInt();
            return cells -> cells[at];
        }
        List<Expression> all = new ArrayList<>();
        node.path("args").forEach(arg -> all.add(read(arg)));
        Expression[] args = all.toArray(new Expression[0]);
        if (node.has("call")) {
            return new Call(node.get("call").asText(), args);
        }
        if (node.has("op")) {
            return operation(node.get("op").asText(), args);
        }
        Object constant = constant(node);
        return cells -> constant;
    }

    private static Object constant(JsonNode node) {
        if (node.has("null")) {
            return null;
        } else if (node.has("bool")) {
            return node.get("bool").asBoolean();
        } else if (node.has("int")) {
            return Long.parseLong(node.get("int").asText());
        } else if (node.has("float")) {
            return Double.parseDouble(node.get("float").asText());
        } else if (node.has("text")) {
            return node.get("text").asText();
        } else if (node.has("bytes")) {
            return HexFormat.of().parseHex(node.get("bytes").asText());
        } else if (node.has("bits")) {
            return node.get("bits").asInt();
        }
        throw new IllegalArgumentException("the job plan has an expression " + node);
    }

    private static Expression operation(String op, Expression[] args) {
        Expression first = args.length == 0 ? null : args[0];
        switch (op) {
            case "coalesce":
                return cells -> coalesce(args, cells);
            case "float":
                return cells -> {
                    Long value = (Long) first.value(cells);
                    return value == null ? null : (Object) (double) value;
                };
            case "not":
                return cells -> {
                    Boolean value = (Boolean) first.value(cells);
                    return value == null ? null : (Object) !value;
                };
            case "is_true":
                return cells -> Boolean.TRUE.equals(first.value(cells));
            case "exists":
                return cells -> first.value(cells) != null;
            case "and":
                return cells -> joined(args, cells, false);
            case "or":
                return cells -> joined(args, cells, true);
            case "between":
                return cells -> between(first.value(cells), args[1].value(cells),
                        args[2].value(cells));
            case "if":
                return cells -> Boolean.TRUE.equals(first.value(cells))
                        ? args[1].value(cells) : args[2].value(cells);
            default:
                return comparison(op, first, args[1]);
        }
    }

    private static Object coalesce(Expression[] args, Object[] cells) {
        for (Expression arg : args) {
            Object value = arg.value(cells);
            if (value != null) {
                return value;
            }
        }
        return null;
    }

    /** Conditions joined by "or", which is true as soon as one is, or by "and". */
    private static Boolean joined(Expression[] args, Object[] cells, boolean decides) {
        boolean unknown = false;
        for (Expression arg : args) {
            Boolean value = (Boolean) arg.value(cells);
            if (value == null) {
                unknown = true;
            } else if (value == decides) {
                return decides;
            }
        }
        return unknown ? null : (Boolean) !decides;
    }

    private static Boolean between(Object value, Object from, Object to) {
        if (value == null || from == null || to == null) {
            return null;
        }
        return compare(value, from) >= 0 && compare(value, to) <= 0;
    }

    private static Expression comparison(String sign, Expression left, Expression right) {
        return cells -> {
            Object a = left.value(cells);
            Object b = right.value(cells);
            if (a == null || b == null) {
                return null;
            }
            int order = compare(a, b);
            return switch (sign) {
                case "=" -> order == 0;
                case "<>" -> order != 0;
                case "<" -> order < 0;
                case "<=" -> order <= 0;
                case ">" -> order > 0;
                case ">=" -> order >= 0;
                default -> throw new IllegalArgumentException("no operation is called " + sign);
            };
        };
    }

    private static int compare(Object a, Object b) {
        if (a instanceof byte[]) {
            return Arrays.compareUnsigned((byte[]) a, (byte[]) b);
        } else if (a instanceof Boolean) {
            return Boolean.compare((Boolean) a, (Boolean) b);
        } else if (a instanceof String) {
            // Texts are only asked whether they are equal.
            return ((String) a).compareTo((String) b);
        }
        return Long.compare((Long) a, (Long) b);
    }

    /** A function of the job. */
    final class Call implements Expression {
        private final ScalarFunction function;
        private final List<Method> variants = new ArrayList<>();
        private final Expression[] args;

        Call(String name, Expression[] args) {
            this.args = args;
            function = Functions.scalar(name);
            for (Method method : function.getClass().getMethods()) {
                if (method.getName().equals("eval") && method.getParameterCount() == args.length) {
                    variants.add(method);
                }
            }
        }

        @Override
        public Object value(Object[] cells) {
            Object[] values = new Object[args.length];
            for (int i = 0; i < values.length; i++) {
                values[i] = args[i].value(cells);
            }
            for (Method variant : variants) {
                if (takes(variant, values)) {
                    return call(variant, values);
                }
            }
            throw new IllegalArgumentException(function.getClass().getSimpleName()
                    + " does not take " + Arrays.toString(values));
        }

        /** Absent values are taken by all variants, which make the same of them. */
        private static boolean takes(Method variant, Object[] values) {
            Class<?>[] types = variant.getParameterTypes();
            for (int i = 0; i < types.length; i++) {
                if (values[i] != null && !types[i].isInstance(values[i])) {
                    return false;
                }
            }
            return true;
        }

        private Object call(Method variant, Object[] values) {
            try {
                return variant.invoke(function, values);
            } catch (IllegalAccessException | InvocationTargetException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
