package weir.job;

import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import weir.merge.Partial;
import weir.plan.JobPlan;

/** The type of groups on their way through a job. */
public final class PartialInfo extends TypeInformation<Partial> {
    private static final long serialVersionUID = 1L;

    private final JobPlan plan;

    public PartialInfo(JobPlan plan) {
        this.plan = plan;
    }

    @Override
    public boolean isBasicType() {
        return false;
    }

    @Override
    public boolean isTupleType() {
        return false;
    }

    @Override
    public int getArity() {
        return 1;
    }

    @Override
    public int getTotalFields() {
        return 1;
    }

    @Override
    public Class<Partial> getTypeClass() {
        return Partial.class;
    }

    @Override
    public boolean isKeyType() {
        return false;
    }

    @Override
    public TypeSerializer<Partial> createSerializer(SerializerConfig config) {
        return new PartialSerializer(plan);
    }

    @Override
    public String toString() {
        return "Partial";
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PartialInfo && ((PartialInfo) other).plan.json.equals(plan.json);
    }

    @Override
    public int hashCode() {
        return plan.json.hashCode();
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof PartialInfo;
    }
}
